"""Verdicts on the paper's claims, from made-up rows with known answers."""

from dataclasses import replace

import numpy as np
import pytest

from airpass.study import report
from airpass.study.claims import claims_of, judge
from airpass.study.paper import figures, schemes
from airpass.study.summary import Mean, draws_to_exclude, holm, mean, p_value
from airpass.study.trial import Row, Trial
from airpass.study.values import Results, best_array
from airpass.study.verdicts import NUMBER, Part, Verdict, adjusted, combined, compare, multiplicity, within

BASE: Trial = replace(figures()["fig2"].trials("smoke")[0], x=None, x_label="")
EFFECT = Mean(1.0, 0.2, 5)


def accuracy(figure: str, of: dict[str, list[float]], point: str = "") -> list[Row]:
    """Test accuracy at the last round, by scheme and trial."""
    return [
        replace(BASE, figure=figure, scheme=scheme, x_label=point, trial=number).row(
            "test_accuracy", value, 10
        )
        for scheme, values in of.items()
        for number, value in enumerate(values)
    ]


def counts(of: dict[str, list[float]], snrs: tuple[float, ...] = (-10.0, 0.0, 10.0)) -> list[Row]:
    """Figure 9 with these numbers of devices at each SNR, in four trials that differ a little."""
    return [
        replace(BASE, figure="fig9", scheme=scheme, x=snr, x_label=f"{snr:g}", trial=number).row(
            "selected_count", value + (0.1 * number if 0 < value < 50 else 0.0)
        )
        for scheme, values in of.items()
        for snr, value in zip(snrs, values, strict=True)
        for number in range(4)
    ]


def claim(name: str, rows: list[Row], scale: str | None = None) -> Verdict:
    by_figure: dict[str, list[Row]] = {}
    for row in rows:
        by_figure.setdefault(row.figure, []).append(row)
    (found,) = [verdict for verdict in judge(by_figure, scale) if verdict.claim == name]
    return found


def parts(found: Verdict, comparison: str = schemes.AS_PRINTED) -> dict[str, str]:
    """Verdicts on the parts of a comparison."""
    return {
        f"{part.what}, {part.data}" if part.data else part.what: part.verdict
        for part in found.comparisons[comparison]
    }


class TestStatistics:
    @pytest.mark.parametrize(
        ("value", "verdict"),
        [
            (0.5, "holds"),
            (1.9, "not decided"),
            (0.1, "not decided"),
            (3.0, "does not hold"),
            (-2.0, "does not hold"),
        ],
    )
    def test_within(self, value: float, verdict: str) -> None:
        assert within(Mean(value, 0.2, 5), 0.0, 2.0) == verdict
        assert within(Mean(value, 0.2, 2), 0.0, 2.0) == "not decided"

    def test_one_limit(self) -> None:
        assert within(EFFECT, low=0.5) == "holds"
        assert within(EFFECT, high=0.5) == "does not hold"
        assert within(EFFECT, low=1.1) == "not decided"
        assert within(mean([]), low=0.0) == "no rows"

    def test_equal_to_the_limit_in_every_trial_is_a_tie(self) -> None:
        same = Mean(0.0, 0.0, 5)
        assert within(same, low=0.0) == within(same, high=0.0) == within(same, 0.0, 2.0) == "tie"
        assert within(same, low=0.1) == "does not hold"
        assert within(same, low=-0.1) == "holds"
        assert within(Mean(0.0, 0.0, 2), low=0.0) == "not decided"
        assert within(Mean(0.0, 0.1, 5), low=0.0) == "not decided"

    def test_draws_to_exclude(self) -> None:
        """With spread 1, 18 trials have a half width of 2.110/sqrt(18) = 0.497, and 17 one of 0.514."""
        values = [0.5 + (-1.0) ** i * np.sqrt(9 / 10) for i in range(10)]  # mean 0.5, spread 1
        found = mean(values)
        assert np.std(values, ddof=1) == pytest.approx(1.0)
        assert draws_to_exclude(found, 0.0) == 18
        assert draws_to_exclude(found, 1.0) == 18
        assert draws_to_exclude(found, found.value) is None
        assert draws_to_exclude(mean([1.0]), 0.0) is None
        part = compare("", dict(enumerate(values)), NUMBER, low=0.0)
        assert part.effect == "+0.50 ± 0.72 (10 trials); would be decided by about 18 trials"
        assert "would" not in compare("", dict.fromkeys(range(5), 1.0), NUMBER, low=0.0).effect

    def test_no_fewer_trials_decide_than_a_verdict_needs(self) -> None:
        """Mean 1.01, half width 12.706 x 0.01: the interval of two trials excludes the limit already."""
        part = compare("", {0: 1.0, 1: 1.02}, NUMBER, low=0.0)
        assert part.verdict == "not decided"
        assert part.effect == "+1.01 ± 0.13 (2 trials); would be decided by about 3 trials"

    def test_p_value(self) -> None:
        # Mean 2, standard error 1/sqrt(3), so t = 2 sqrt(3). For two degrees of freedom
        # p = 1 - t/sqrt(2 + t^2).
        found = mean([1.0, 2.0, 3.0])
        assert p_value(found, 0.0) == pytest.approx(1.0 - 12.0**0.5 / 14.0**0.5)
        assert p_value(found, 4.0) == pytest.approx(p_value(found, 0.0))
        assert p_value(found, 2.0) == 1.0
        # The limit at the end of the interval.
        assert p_value(found, 2.0 - found.half_width) == pytest.approx(0.05)
        assert p_value(Mean(1.0, 0.0, 3), 0.0) == 0.0
        assert np.isnan(p_value(Mean(1.0, 0.0, 3), 1.0))
        assert np.isnan(p_value(mean([1.0]), 0.0))

    def test_holm(self) -> None:
        # 3 x 0.01; 2 x 0.03; 1 x 0.04, raised to the one before.
        assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
        assert holm([0.9, 0.8]) == [1.0, 1.0]
        assert holm([]) == []

    def test_the_nearest_limit_counts(self) -> None:
        values = {0: 0.9, 1: 1.0, 2: 1.1, 3: 1.0}
        found = compare("", values, NUMBER, low=0.0, high=1.5)
        assert found.verdict == "holds"
        assert found.p == pytest.approx(p_value(mean(list(values.values())), 1.5))

    def test_values_that_are_not_defined(self) -> None:
        nan = float("nan")
        assert compare("", {0: 1.0, 1: nan}, NUMBER, low=0.0).effect == "+1.00 (2 trials; 1 undefined)"
        found = compare("", {0: nan}, NUMBER, low=0.0)
        assert (found.verdict, found.effect) == ("not decided", "undefined (1 trial; 1 undefined)")


class TestCombination:
    @pytest.mark.parametrize(
        ("found", "verdict"),
        [
            (["holds", "holds"], "holds"),
            (["holds", "tie"], "holds, with ties"),
            (["tie", "tie"], "tie"),
            (["tie", "does not hold"], "does not hold"),
            (["tie", "not decided"], "not decided"),
            (["tie", "no rows"], "not decided"),
            (["holds", "no rows"], "not decided"),
            (["holds", "not decided"], "not decided"),
            (["not decided", "no rows", "does not hold"], "does not hold"),
            (["no rows", "no rows"], "no rows"),
            ([], "no rows"),
        ],
    )
    def test_parts(self, found: list[str], verdict: str) -> None:
        assert combined(found) == verdict
        assert combined(found[::-1]) == verdict

    def test_a_data_set_without_rows_leaves_the_other_alone(self) -> None:
        found = claim(
            "C1",
            accuracy(
                "fig2",
                {
                    "airpass": [0.90, 0.91, 0.92],
                    "mimo-m-1-start": [0.70, 0.72, 0.71],
                    "mimo-mn-1-start": [0.80, 0.80, 0.82],
                },
            ),
        )
        assert found.verdict == "MNIST: holds; CIFAR-10: no rows"
        assert parts(found) == {
            "AirPASS above co-located, M (1 start), MNIST": "holds",
            "AirPASS above co-located, MN (1 start), MNIST": "holds",
            "AirPASS above co-located, M (1 start), CIFAR-10": "no rows",
            "AirPASS above co-located, MN (1 start), CIFAR-10": "no rows",
        }
        assert found.by_comparison[schemes.BEST_KNOWN] == "MNIST: no rows; CIFAR-10: no rows"

    def test_each_comparison_has_a_verdict_of_its_own(self) -> None:
        values = {
            "airpass": [0.90, 0.91, 0.92],
            "mimo-m-1-start": [0.70, 0.72, 0.71],
            "mimo-mn-1-start": [0.80, 0.80, 0.82],
            "airpass-plus": [0.93, 0.94, 0.95],
            schemes.TRAINED_ARRAY: [0.95, 0.96, 0.98],
        }
        rows = accuracy("fig2", values) + accuracy("fig3", values)
        found = claim("C1", rows)
        assert found.verdict == "MNIST: holds; CIFAR-10: holds"
        assert found.by_comparison[schemes.BEST_KNOWN] == "MNIST: does not hold; CIFAR-10: does not hold"
        (what, _) = parts(found, schemes.BEST_KNOWN)
        assert what == "AirPASS-plus above co-located, MN, plus (xz), MNIST"
        # The gain over M: 20, 19, 21 points.
        assert (
            parts(claim("C2", rows))["gain over co-located, M (1 start) more than 3 points, MNIST"] == "holds"
        )

    @pytest.mark.parametrize(
        ("gap", "verdict"), [(0.2, "holds"), (-0.2, "does not hold"), (0.0, "not decided")]
    )
    def test_a_difference_within_trials_decides(self, gap: float, verdict: str) -> None:
        """The draw of a trial moves all schemes alike, by more than they differ."""
        rng = np.random.default_rng(1)
        level = 0.5 + 0.2 * rng.random(4)
        values = {
            scheme: list(level + (gap if scheme == "airpass" else 0.0) + 0.01 * rng.standard_normal(4))
            for scheme in ("airpass", "mimo-m-1-start", "mimo-mn-1-start")
        }
        assert claim("C1", accuracy("fig2", values)).verdict == f"MNIST: {verdict}; CIFAR-10: no rows"
        fewer = {scheme: found[:2] for scheme, found in values.items()}
        assert claim("C1", accuracy("fig2", fewer)).verdict == "MNIST: not decided; CIFAR-10: no rows"


class TestClaims:
    def test_close_to_fedavg(self) -> None:
        mnist = accuracy("fig2", {"fedavg": [0.92, 0.93, 0.94], "airpass": [0.91, 0.92, 0.935]})
        assert claim("C3", mnist).verdict == "MNIST: holds; CIFAR-10: no rows; both: no rows"
        cifar = accuracy("fig3", {"fedavg": [0.70, 0.71, 0.72], "airpass": [0.60, 0.61, 0.63]})
        assert claim("C3", mnist + cifar).verdict == "MNIST: holds; CIFAR-10: does not hold; both: holds"

    def test_training_that_has_not_converged_hides_gaps(self) -> None:
        mnist = accuracy("fig2", {"fedavg": [0.92, 0.93, 0.94], "airpass": [0.91, 0.92, 0.935]})
        cifar = accuracy("fig3", {"fedavg": [0.31, 0.32, 0.33], "airpass": [0.30, 0.31, 0.325]})
        found = claim("C3", mnist + cifar)
        assert found.verdict == "MNIST: holds; CIFAR-10: not decided; both: not decided"
        (close,) = [
            part for part in found.parts if part.data == "CIFAR-10" and part.comparison == "as printed"
        ]
        assert close.effect.endswith("FedAvg on CIFAR-10 is at 32 %, and closeness is judged from 60 % on")
        assert np.isnan(close.p)
        low = accuracy("fig2", {"fedavg": [0.84, 0.84, 0.85], "airpass": [0.84, 0.83, 0.85]})
        assert claim("C3", low).verdict.startswith("MNIST: not decided")

    def test_a_gap_before_convergence_is_a_gap(self) -> None:
        mnist = accuracy("fig2", {"fedavg": [0.92, 0.93, 0.94], "airpass": [0.91, 0.92, 0.935]})
        cifar = accuracy("fig3", {"fedavg": [0.41, 0.42, 0.43], "airpass": [0.31, 0.32, 0.335]})
        assert claim("C3", mnist + cifar).verdict == "MNIST: holds; CIFAR-10: does not hold; both: holds"
        early = accuracy("fig2", {"fedavg": [0.52, 0.53, 0.54], "airpass": [0.51, 0.52, 0.535]})
        assert claim("C3", early + cifar).verdict.endswith("both: not decided")

    def test_variants_in_each_setting(self) -> None:
        """MP below, SDR-DC one point above; in the second setting they tie."""
        ahead = {
            "airpass": [0.90, 0.91, 0.92],
            "airpass-mp": [0.80, 0.82, 0.81],
            "airpass-sdr-dc": [0.91, 0.921, 0.93],
        }
        same = {key: [0.9, 0.91, 0.92] for key in ahead}
        found = claim("C4", accuracy("fig4", ahead, "10") + accuracy("fig4", same, "10, energy"))
        assert found.by_comparison == {
            "as printed": "MNIST: holds; CIFAR-10: no rows",
            "10 dB, energy (added)": "MNIST: tie; CIFAR-10: no rows",
            "-4 dB, share (added)": "MNIST: no rows; CIFAR-10: no rows",
        }

    def test_falling_loss_with_diminishing_returns(self) -> None:
        rows = [
            replace(BASE, figure="fig6", scheme="airpass", x=m, x_label=f"{m:g}", trial=number).row(
                "train_loss", 1.0 / m + 0.001 * number * m, 9
            )
            for m in (1.0, 2.0, 3.0, 10.0)
            for number in range(3)
        ]
        assert claim("C5", rows).verdict == "holds"
        assert claim("C5", [replace(row, value=-row.value) for row in rows]).verdict == "does not hold"
        assert claim("C5", rows[:6]).verdict == "not decided"

    def test_more_devices_most_at_low_snr(self) -> None:
        rows = counts(
            {
                "airpass": [20, 40, 50],
                "airpass-sdr-dc": [21, 41, 50],
                "airpass-mp": [10, 30, 50],
                "mimo-m-1-start": [5, 35, 50],
                "mimo-mn-1-start": [10, 38, 50],
            }
        )
        found = claim("C8", rows)
        # A lead has no spread, but equals no limit.
        assert found.verdict == "holds"
        # Two points at which not all select everyone: two arrays, MP, SDR-DC; the gain over each array;
        # the meeting.
        assert len(found.comparisons["as printed"]) == 2 * 3 + 2 + 2 + 1
        assert found.by_comparison["equal effort"] == found.by_comparison["best known of each"] == "no rows"
        # With as many devices as MP at -10 dB in every trial.
        tied = [row for row in rows if row.scheme != "airpass-mp" or row.x != -10.0]
        tied += [
            replace(row, scheme="airpass-mp") for row in rows if row.scheme == "airpass" and row.x == -10.0
        ]
        found = claim("C8", tied)
        assert parts(found)["AirPASS above AirPASS-MP, -10 dB"] == "tie"
        assert found.verdict == "holds, with ties"

    def test_each_part_can_fail(self) -> None:
        found = claim(
            "C8",
            counts(
                {
                    "airpass": [10, 40, 50],
                    "airpass-sdr-dc": [9, 45, 50],
                    "airpass-mp": [11, 30, 45],
                    "mimo-m-1-start": [5, 39, 50],
                    "mimo-mn-1-start": [20, 42, 50],
                }
            ),
        )
        assert found.verdict == "does not hold"
        assert parts(found) == {
            "AirPASS above co-located, M (1 start), -10 dB": "holds",
            "AirPASS above co-located, M (1 start), 0 dB": "holds",
            "AirPASS above co-located, MN (1 start), -10 dB": "does not hold",
            "AirPASS above co-located, MN (1 start), 0 dB": "does not hold",
            "AirPASS above AirPASS-MP, -10 dB": "does not hold",
            "AirPASS above AirPASS-MP, 0 dB": "holds",
            "AirPASS above AirPASS-MP, 10 dB": "holds",
            "mean gain over co-located, M (1 start) larger below 0 dB than above, by": "holds",
            "mean gain over co-located, MN (1 start) larger below 0 dB than above, by": "does not hold",
            "AirPASS-SDR-DC above AirPASS by 0 to 2 devices, -10 dB": "does not hold",
            "AirPASS-SDR-DC above AirPASS by 0 to 2 devices, 0 dB": "does not hold",
            "all within 1 device at 10 dB": "does not hold",
        }

    def test_three_comparisons_of_devices(self) -> None:
        """One start: ahead. 16 starts: behind. Best known: ahead of another array at each SNR."""
        arrays = {name: [5.0, 20.0, 50.0] for name in schemes.ARRAYS}
        rows = counts(
            {
                "airpass": [20, 40, 50],
                "airpass-sdr-dc": [21, 41, 50],
                "airpass-mp": [10, 30, 50],
                "mimo-m-1-start": [5, 35, 50],
                "mimo-mn-1-start": [10, 38, 50],
                "airpass-16-starts": [22, 41, 50],
                "mimo-m-16-starts": [5, 36, 50],
                "mimo-mn-16-starts": [30, 43, 50],
                "airpass-plus": [40, 49, 50],
                **arrays,
                "mimo-mn-plus-xz": [33, 44, 50],
                "distributed-mn": [30, 45, 50],
            }
        )
        found = claim("C8", rows)
        assert found.by_comparison == {
            "as printed": "holds",
            "equal effort": "does not hold",
            "best known of each": "holds",
        }
        assert parts(found, schemes.BEST_KNOWN) == {
            "AirPASS-plus above the best array (co-located, MN, plus (xz)), -10 dB": "holds",
            "AirPASS-plus above the best array (distributed, MN), 0 dB": "holds",
            # 7 devices at -10 dB; (4 + 0)/2 from 0 dB on.
            "mean gain over the best array larger below 0 dB than above, by": "holds",
            "all within 1 device at 10 dB": "holds",
        }
        (gain,) = [part for part in found.parts if "over the best array" in part.what]
        assert gain.effect == "+5.00 ± 0.00 devices (4 trials)"

    def test_the_other_rule_of_weights_is_not_judged(self) -> None:
        rows = counts({"airpass": [20, 40, 50], "mimo-mn-1-start": [10, 38, 50]})
        other = [replace(row, x_label=f"{row.x_label}, energy", value=-row.value) for row in rows]
        # Texts, as NaN does not equal itself.
        assert repr(claim("C8", rows + other)) == repr(claim("C8", rows))

    def test_the_best_array_by_its_mean(self) -> None:
        of = {"a": [3.0, 4.0, 5.0], "b": [5.0, 5.0, 3.0], "c": [4.0, 4.0, 5.0]}

        def found(values: dict[str, list[float]]) -> Results:
            rows = [
                replace(BASE, scheme=scheme, x=0.0, x_label="0", trial=number).row("selected_count", value)
                for scheme, numbers in values.items()
                for number, value in enumerate(numbers)
            ]
            return Results("fig9", rows)

        # Means of 4, 13/3 and 13/3: the first of two that are equal.
        best = best_array(found(of), "0", "abc")
        assert best == ("the best array (b)", {0: 5.0, 1: 5.0, 2: 3.0})
        assert best_array(found(of), "0", "acb").name == "the best array (c)"
        # On the two trials that all have: 3.5, 5 and 4.
        shorter = of | {"a": [3.0, 4.0]}
        assert best_array(found(shorter), "0", "acb").name == "the best array (b)"
        assert best_array(found(of), "0", "abcd").name == "the best array (b, of 3 of 4 arrays)"
        assert best_array(found(of), "5", "abc").values == {}


class TestPlan:
    def rows(self, trials: int) -> list[Row]:
        step = np.linspace(0.0, 0.01, trials)
        return accuracy(
            "fig2",
            {
                "airpass": list(0.9 + step),
                "mimo-m-1-start": list(0.7 - step),
                "mimo-mn-1-start": list(0.8 - 2 * step),
            },
        )

    def test_fewer_trials_than_declared_are_interim(self) -> None:
        found = claim("C1", self.rows(8), "paper")
        assert found.verdict == "MNIST: holds (interim); CIFAR-10: no rows"
        assert found.parts[0].effect.endswith("points (8 of 20 trials; interim)")
        assert found.parts[0].interim

    def test_all_trials_are_not(self) -> None:
        found = claim("C1", self.rows(20), "paper")
        assert found.verdict == "MNIST: holds; CIFAR-10: no rows"
        assert found.parts[0].effect.endswith("points (20 trials)")
        assert claim("C1", self.rows(8)).verdict == "MNIST: holds; CIFAR-10: no rows"

    def test_a_slow_scheme_has_a_number_of_its_own(self) -> None:
        rows = [
            replace(BASE, figure="fig9", scheme=scheme, x=0.0, x_label="0", trial=number).row(
                "selected_count", value + 0.01 * number
            )
            for scheme, value, trials in (("airpass", 20.0, 50), ("airpass-sdr-dc", 21.0, 10))
            for number in range(trials)
        ]
        found = claim("C8", rows, "paper")
        (slow,) = [part for part in found.parts if "SDR-DC" in part.what]
        assert (slow.interim, slow.effect) == (False, "+1.00 ± 0.00 devices (10 trials)")

    def test_a_scheme_without_rows_leaves_its_data_set_interim(self) -> None:
        rows = [row for row in self.rows(20) if row.scheme != "mimo-m-1-start"]
        assert claim("C1", rows, "paper").verdict == "MNIST: not decided (interim); CIFAR-10: no rows"
        assert claim("C1", rows).verdict == "MNIST: not decided; CIFAR-10: no rows"


class TestMultiplicity:
    def verdicts(self) -> list[Verdict]:
        tested = [Part(f"part {i}", "holds", "", p=p) for i, p in enumerate((0.001, 0.02, 0.04))]
        rest = [Part("open", "not decided", "", p=0.5), Part("tied", "tie", "")]
        # The second claim rests on a part of the first.
        first, second = (
            Verdict(name, "", (), tuple(found))
            for name, found in (("A", [*tested, *rest]), ("B", tested[:1]))
        )
        return adjusted([first, second])

    def test_distinct_comparisons_count_once(self) -> None:
        first, second = self.verdicts()
        # 4 x 0.001; 3 x 0.02; 2 x 0.04; 1 x 0.5.
        assert [part.holm for part in first.parts[:4]] == pytest.approx([0.004, 0.06, 0.08, 0.5])
        assert np.isnan(first.parts[4].holm)
        assert second.parts[0].holm == first.parts[0].holm

    def test_the_text_says_what_chance_would_do(self) -> None:
        text = multiplicity(self.verdicts())
        assert "Comparisons at 95 % confidence: 4." in text
        assert "chance would decide 0.2 of them on average" in text
        assert "Decided: 3; after Holm's correction for all 4: 1." in text
        assert multiplicity([]) == "No comparison has enough trials for a decision."

    def test_page_and_text_have_it(self) -> None:
        rows = {"fig2": TestPlan().rows(8)}
        verdicts = judge(rows, "paper")
        section = report.Section("fig2", "", None, claims=claims_of(verdicts, "fig2"))
        page = report.report([section], verdicts, "paper", "airpass").decode()
        text = report.claims_text(verdicts)
        for words in ("chance would decide", "8 of 20 trials; interim"):
            assert words in page
            assert words in text
        assert text.startswith("C1  AirPASS beats")
        assert "\n  as printed: MNIST: HOLDS (INTERIM); CIFAR-10: NO ROWS\n" in text
        assert "Holm" in page

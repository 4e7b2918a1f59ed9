"""The sentences and pages that are made from stored rows."""

import re
from pathlib import Path
from typing import Any

import pytest

from airpass.study import findings as said
from airpass.study.claims import claims_of, judge
from airpass.study.known import known_figures
from airpass.study.paper import fig9, table1
from airpass.study.paper.schemes import ARRAYS
from airpass.study.report import report, typeset
from airpass.study.trial import Row
from command_line import assert_refused


def rows(figure: str, metric: str, values: dict[tuple[str, str], list[float]]) -> list[Row]:
    """Rows of a figure, by scheme and point."""
    return [
        Row(figure, scheme, float(point.partition(",")[0] or 0), point, trial, 0, metric, value, trial, "key")
        for (scheme, point), found in values.items()
        for trial, value in enumerate(found)
    ]


class TestFindings:
    def test_nothing_is_said_without_rows(self) -> None:
        assert said.findings({}) == []

    def test_the_lead_over_the_best_array(self) -> None:
        """Leads of 4, 5, 6: mean 5, half width 4.303/sqrt(3) = 2.48 (t with two degrees of freedom)."""
        arrays = {(name, "-10"): [20.0, 20.0, 20.0] for name in ARRAYS}
        arrays["mimo-mn-plus-xz", "-10"] = [30.0, 30.0, 30.0]
        counts = {("airpass-plus", "-10"): [34.0, 35.0, 36.0], **arrays}
        (text,) = said.findings({"fig9": rows("fig9", "selected_count", counts)})
        assert f"at {said.MINUS}10 dB AirPASS-plus selects 35.0 of 50 devices" in text
        assert "selects 30.0, 5.0 ± 2.5 fewer" in text
        assert f"significantly ahead by 5.0 ± 2.5 at {said.MINUS}10 dB" in text
        assert text.endswith("and nowhere significantly behind.")

    def test_the_lead_with_energy_weights(self) -> None:
        """The same leads with the other sign."""
        counts = {(name, "-5, energy"): [34.0, 35.0, 36.0] for name in ARRAYS}
        counts["airpass-plus", "-5, energy"] = [30.0, 30.0, 30.0]
        (text,) = said.findings({"fig9": rows("fig9", "selected_count", counts)})
        assert text.startswith("With energy weights, AirPASS-plus nowhere is significantly ahead")
        assert text.endswith(f"and significantly behind by 5.0 ± 2.5 at {said.MINUS}5 dB.")

    def test_a_scheme_that_leads_at_no_snr(self) -> None:
        counts = {
            ("airpass-16-starts", "0"): [10.0, 11.0, 12.0],
            ("mimo-mn-16-starts", "0"): [14.0, 16.0, 18.0],
        }
        (text,) = said.findings({"fig9": rows("fig9", "selected_count", counts)})
        assert text.endswith(
            "nowhere selects more devices than the M x N array, and fewer by 5.0 ± 2.5 at 0 dB."
        )

    def test_an_array_that_is_ahead_is_named(self) -> None:
        accuracy = {("fedavg", ""): [0.9, 0.91, 0.92], ("airpass-plus", ""): [0.8, 0.81, 0.82]}
        accuracy |= {("airpass", ""): [0.5, 0.6, 0.7], ("mimo-mn-1-start", ""): [0.7, 0.6, 0.5]}
        (text,) = said.findings({"fig2": rows("fig2", "test_accuracy", accuracy)})
        assert "ideal FedAvg: 91.0 %" in text
        assert "AirPASS-plus is 10.0 ± 0.0 points below FedAvg" in text
        assert "AirPASS and co-located, MN (1 start) differ by 0.0 ± 49.7 points" in text

    def test_from_where_on_the_array_is_ahead(self) -> None:
        aligned = {
            ("airpass-plus", "0"): [40.0, 41.0, 42.0],
            ("mimo-mn-plus-xz", "0"): [35.0, 36.0, 37.0],
            ("airpass-plus", "2"): [30.0, 31.0, 32.0],
            ("mimo-mn-plus-xz", "2"): [33.0, 34.0, 35.0],
        }
        (text,) = said.findings({"tolerance": rows("tolerance", "aligned_re_solved", aligned)})
        assert "the best array (co-located, MN, plus (xz), of 1 of 7 arrays) is ahead from 2 mm on" in text
        assert "(34.0 against 31.0 devices)" in text

    @pytest.mark.parametrize(
        ("leads", "words"),
        [
            ((-5.0, -4.0), "AirPASS-plus stays ahead of the best array at all points"),
            ((-5.0, 0.0), "AirPASS-plus is not measurably behind the best array at any point"),
            ((5.0, -4.0), "is ahead at 0 mm (35.0 against 30.0 devices at 0 mm)"),
            ((5.0, 4.0), "is ahead from 0 mm on (35.0 against 30.0 devices)"),
        ],
    )
    def test_where_the_array_is_ahead(self, leads: tuple[float, float], words: str) -> None:
        aligned = {}
        for point, lead in zip(("0", "2"), leads, strict=True):
            aligned["airpass-plus", point] = [29.0, 30.0, 31.0]
            aligned["mimo-mn-plus-xz", point] = [29.0 + lead, 30.0 + lead, 31.0 + lead]
        (text,) = said.findings({"tolerance": rows("tolerance", "aligned_re_solved", aligned)})
        assert words in text

    def test_one_trial_says_nothing_about_who_is_ahead(self) -> None:
        aligned = {("airpass-plus", "0"): [1.6], ("mimo-mn-plus-xz", "0"): [4.2]}
        assert said.findings({"life": rows("life", "aligned_re_solved", aligned)}) == []

    def test_words_follow_signs(self) -> None:
        counts = {(name, "0"): [30.0, 31.0, 32.0] for name in ARRAYS}
        counts["airpass-plus", "0"] = [3.0, 3.0, 3.0, 90.0]  # the last trial is not compared
        (text,) = said.findings({"fig9": rows("fig9", "selected_count", counts)})
        assert "selects 3.0 of" in text
        assert "selects 31.0, 28.0 ± 2.5 more" in text
        accuracy = {("airpass-plus-turns", "0"): [0.8] * 3, ("airpass-plus", "0"): [0.9] * 3}
        (text,) = said.findings({"turns-snr": rows("turns-snr", "test_accuracy", accuracy)})
        assert text.endswith("is 80.0 % instead of 90.0 % with one design (10.0 ± 0.0 points less).")

    @pytest.mark.parametrize(
        ("last", "words"),
        [
            ([0.6], "does not change measurably (0.40 lower)"),
            ([0.6, 1.4, 0.8], "does not change measurably (0.07 ± 1.03 lower)"),
            ([0.5, 0.5, 0.5], "falls by 0.50 ± 0.00"),
            ([1.5, 1.5, 1.5], "rises by 0.50 ± 0.00"),
        ],
    )
    def test_the_loss_along_an_axis(self, last: list[float], words: str) -> None:
        tables = {
            name: rows(name, "train_loss", {("airpass", "1"): [1.0] * len(last), ("airpass", "5"): last})
            for name in ("fig6", "fig7", "fig8")
        }
        (text,) = said.findings(tables)
        assert text.startswith(f"Training loss: AirPASS {words} from M = 1 to 5; ")


def test_a_figure_has_the_parts_of_its_data_set() -> None:
    accuracy = {("airpass", ""): [0.8, 0.81, 0.82], ("mimo-m-1-start", ""): [0.7, 0.7, 0.7]}
    verdicts = judge({"fig2": rows("fig2", "test_accuracy", accuracy)})
    assert {part.data for one in claims_of(verdicts, "fig2") for part in one.parts} == {"MNIST"}
    assert {part.data for one in claims_of(verdicts, "fig3") for part in one.parts} == {"CIFAR-10", "both"}
    assert claims_of(verdicts, "fig9") == ()


@pytest.mark.parametrize("markdown", [False, True])
def test_pages_have_the_text_of_claims_without_rows(markdown: bool) -> None:
    verdicts = judge({"fig2": [], "fig9": []})
    page = report([], verdicts, "paper", "airpass", missing=["fig2", "fig9"], markdown=markdown).decode()
    assert [one.claim for one in verdicts] == ["C1", "C2", "C3", "C8"]
    for one in verdicts:
        assert one.text in page
    assert ("| fig2, fig3 |" if markdown else "C1 (fig2, fig3): AirPASS beats") in page


def test_numbers_on_pages() -> None:
    minus, between = "\N{MINUS SIGN}", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
    given = "gain -2.14 ± 0.68 at -10 dB, mimo-mn, 3-5, f(x)-1"
    assert typeset(given) == f"gain {minus}2.14{between}0.68 at {minus}10 dB, mimo-mn, 3-5, f(x)-1"


class TestRedraw:
    @pytest.mark.slow
    def test_pages_of_stopped_figures(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Half of the trials, of a run that did not merge them."""
        sizes = (((5,), (2, 8)), ((5,), (2, 8)))
        monkeypatch.setitem(table1.SCALES, "smoke", sizes)
        monkeypatch.setitem(fig9.SCALES, "smoke", ((4, 2, 2), (0.0, 20.0), (20.0,)))
        out = tmp_path / "r"
        assert run("reproduce", "fig9", "table1", "--out", out, "--workers", 1).code == 0
        figure = known_figures()["table1"]
        for name in ("rows.parquet", "timings.parquet", "provenance.json"):
            (out / "table1" / name).unlink()
        for trial in figure.trials("smoke"):
            if trial.trial == 1:
                (out / "table1" / "trials" / f"{trial.key}.parquet").unlink()
        pages = [tmp_path / "page.html", tmp_path / "docs" / "page.md"]
        pages[1].parent.mkdir()
        flags = [word for page in pages for word in ("--page", page)]
        outcome = run("reproduce", "fig9", "table1", "fig6", "--redraw", "--out", out, *flags)
        assert outcome.code == 0
        assert "table1: 1 of 2 trials; interim" in outcome.out
        html, markdown = (page.read_text() for page in pages)
        assert html.count("data:image/png;base64,") == 2
        for way in re.findall(r'href="([^"]+)"', html):
            assert f'id="{way[1:]}"' in html if way.startswith("#") else (tmp_path / way).is_file()
        ways = re.findall(r"\]\(([^)]+)\)", markdown)
        assert "../r/fig9/fig9.png" in ways
        assert all((tmp_path / "docs" / way).is_file() for way in ways if not way.endswith("studies.md"))
        for text in (html, markdown):
            assert "C8" in text
            assert "1 of 2 trials; interim" in text
            assert "Not computed so far: fig6." in text
        assert "| no rows | C5 |" in markdown

    def test_flags_that_do_not_fit(self, run: Any, tmp_path: Path) -> None:
        assert_refused(run("reproduce", "--redraw", "--claims"), "--claims", "--redraw")
        assert_refused(run("reproduce", "fig9", "--page", tmp_path / "x.md"), "--page requires --redraw")
        assert_refused(run("reproduce", "--redraw", "--page", tmp_path / "x.pdf"), "x.pdf", ".md")
        page = tmp_path / "page.md"
        page.write_text("kept")
        flags = ["--out", tmp_path / "none", "--page", page]
        assert_refused(run("reproduce", "--redraw", *flags), "no rows are stored")
        assert page.read_text() == "kept"

    def test_incomplete_provenance(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(table1.SCALES, "smoke", (((5,), (2,)), ((5,), (2,))))
        assert run("reproduce", "table1", "--out", tmp_path, "--workers", 1).code == 0
        (tmp_path / "provenance.json").write_text('{"study": "table1", "scale": "smoke"}')
        assert_refused(
            run("reproduce", "table1", "--redraw", "--out", tmp_path), "provenance.json", "is missing"
        )

"""Books of designs, and training by turns."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from airpass import (
    Book,
    InvalidInput,
    Scenario,
    TrainOptions,
    certify_layouts,
    design,
    design_for_all,
    load,
    schedule,
    train,
)
from airpass.aircomp import Link
from airpass.core.types import Single
from airpass.designs.book import even_shares
from airpass.designs.plus import AirpassPlus
from airpass.learning import aggregation
from airpass.learning.compare import compare
from airpass.learning.training import prepare
from command_line import assert_refused

FAST = AirpassPlus(effort="fast", threads=1)


def book_for(seed: int, snr_db: float = 3.0, turns: int | str = "auto", move: str = "antennas") -> Book:
    return schedule(Scenario.paper(8, 4, 4, snr_db, seed), turns, move, FAST)


@pytest.fixture(scope="module")
def book() -> Book:
    found = book_for(2)
    assert found.turns > 1
    return found


@pytest.fixture(scope="module")
def beams() -> Book:
    """Three different beams, which do not serve all devices."""
    found = book_for(1, -4.0, turns=3, move="beams")
    assert 0 < found.served.sum() < 8
    return found


def cycle_sums(found: Book) -> Any:
    """A_k from the formulas: sums of sqrt(Gamma) |m^H g_k|/phi_k."""
    total = np.zeros(found.served.size)
    for one in found.designs:
        channels = one.channels if one.layout is None else found.scenario.channels(one.layout)
        total += np.sqrt(found.scenario.budget) * np.abs(one.beam.conj() @ channels) / found.scenario.weights
    return total


class TestBooks:
    @settings(max_examples=8)
    @given(st.integers(0, 10_000), st.floats(-8.0, 8.0), st.sampled_from(["antennas", "beams"]))
    def test_a_book_serves_what_it_says(self, seed: int, snr_db: float, move: str) -> None:
        found = book_for(seed, snr_db, move=move)
        np.testing.assert_allclose(np.sqrt(found.cycle_scores), cycle_sums(found), rtol=1e-9)
        assert (found.served == (found.cycle_scores >= 1.0)).all()
        assert found.covered.tolist() == [found.turns if inside else 0 for inside in found.served]
        for one in found.designs:  # with the weights of the turn
            assert (one.selected == found.served).all()
            assert one.mse <= found.scenario.radio.mse_threshold or not found.served.any()
        assert all(one.scenario is found.scenario for one in found.designs)
        assert not (found.unservable & found.missing).any()
        assert (found.served | found.unservable | found.missing).all()
        bounds = certify_layouts(found.scenario).best_scores
        assert (found.least_turns >= (1.0 - 1e-6) / np.sqrt(bounds)).all()
        assert (found.least_turns - 1 < 1.0 / np.sqrt(bounds)).all()
        assert (found.least_turns[found.served] <= found.turns).all()

    def test_all_are_served_where_one_design_serves_a_part(self) -> None:
        for seed in range(6):
            found = book_for(seed)
            assert design(found.scenario, FAST).selected_count < 8
            assert found.served.all()
            assert found.turns <= 3

    def test_turns_are_not_more_than_those_of_one_design(self) -> None:
        for seed in range(3):
            found = book_for(seed, -4.0)
            alone = design_for_all(found.scenario, FAST)
            error = found.scenario.radio.mse_threshold / alone.mse  # smallest score with whole weights
            assert found.turns <= np.ceil(1.03 / np.sqrt(error))
            assert found.update_mse <= 1.06 * alone.mse

    def test_beams_only_keep_the_layout(self) -> None:
        found = book_for(1, -4.0, turns=3, move="beams")
        assert found.move == "beams"
        first = found.designs[0].layout
        assert all(np.array_equal(first, one.layout) for one in found.designs)  # type: ignore[arg-type]
        assert len({one.beam.tobytes() for one in found.designs}) == 3

    @pytest.mark.parametrize("turns", [1, 2, 5])
    def test_a_given_number_of_turns(self, turns: int) -> None:
        found = book_for(2, turns=turns)
        assert found.turns == turns
        assert found.served.all() or turns == 1

    def test_more_turns_serve_more(self) -> None:
        served = [int(book_for(2, -5.0, turns=turns).served.sum()) for turns in (1, 2, 3, 4)]
        assert served == sorted(served)
        assert served[-1] > 2 * served[0]

    def test_the_same_seed_gives_the_same_book(self, book: Book) -> None:
        again = schedule(book.scenario, method=FAST)
        assert [one.beam.tobytes() for one in again.designs] == [one.beam.tobytes() for one in book.designs]

    def test_devices_without_priority_need_no_turn(self) -> None:
        scenario = Scenario.paper(8, 4, 4, 3.0, 2)
        wanted = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        found = schedule(scenario.with_priorities(wanted), method=FAST)
        assert found.turns <= 2
        assert found.served[:2].all()
        assert not found.missing.any()

    def test_arrays_change_beams(self) -> None:
        scenario = Scenario.paper(8, 4, 4, 3.0, 2)
        found = schedule(scenario, move="beams", method="mimo-mn-plus")
        array = found.designs[0].array
        assert array is not None
        weights = scenario.weights
        lengths = np.sqrt(scenario.budget) * np.linalg.norm(found.designs[0].channels, axis=0) / weights
        assert (found.least_turns == np.ceil(1.0 / lengths)).all()
        np.testing.assert_allclose(np.sqrt(found.cycle_scores), cycle_sums(found), rtol=1e-9)
        assert found.served.all()
        with pytest.raises(InvalidInput, match=r"mimo-mn-plus has no antennas that move"):
            schedule(scenario, method="mimo-mn-plus")

    def test_nobody_can_be_served(self) -> None:
        found = book_for(1, -60.0)
        assert found.turns == 1
        assert found.unservable.all()
        assert not found.shares.any()
        assert np.isnan(found.update_mse)
        assert all(np.isfinite(link.weights).all() for link in found.links)

    def test_wrong_arguments(self) -> None:
        scenario = Scenario.paper(4, 2, 2)
        for turns in (0, "some", 1.5):
            with pytest.raises(InvalidInput, match="turns"):
                schedule(scenario, turns)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="move"):
            schedule(scenario, move="devices")

        def own(scenario: Scenario, seed: int) -> Any:
            return scenario.uniform_layout(), np.ones(scenario.receiver.waveguides)

        with pytest.raises(InvalidInput, match="own cannot use priorities"):
            schedule(scenario, method=own)


class TestShares:
    def test_known_answers(self) -> None:
        # The first device sends alone in the first turn, the second is strong in both. The third decides the
        # smallest sum, A = 1, and so has to use all of its amplitude.
        amplitudes = np.array([[1.5, 2.0, 0.25, 0.1], [0.0, 3.0, 0.75, 0.1]])
        shares = even_shares(amplitudes, np.array([True, True, True, False]))
        np.testing.assert_allclose(shares, [[1.0, 0.5, 0.25, 0.0], [0.0, 0.5, 0.75, 0.0]], atol=1e-12)
        assert not even_shares(amplitudes, np.zeros(4, bool)).any()

    @settings(max_examples=50)
    @given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 5))
    def test_even_and_within_the_error(self, seed: int, turns: int, devices: int) -> None:
        rng = np.random.default_rng(seed)
        amplitudes = rng.uniform(0.0, 1.0, (turns, devices)) ** 3 + 1e-6
        amplitudes /= amplitudes.sum(axis=0).min()
        shares = even_shares(amplitudes, np.ones(devices, bool))
        np.testing.assert_allclose(shares.sum(axis=0), 1.0)
        assert (shares <= amplitudes * (1.0 + 1e-9)).all()
        # Even: a share below the largest of its device is at its limit.
        below = shares < shares.max(axis=0) * (1.0 - 1e-9)
        np.testing.assert_allclose(shares[below], amplitudes[below], rtol=1e-9)


def max_min(effective: Any, starts: int, seed: int) -> float:
    """Largest min_k |m^H h_k|^2 over unit beams that an independent ascent on a soft minimum finds."""
    chains = effective.shape[0]
    rng = np.random.default_rng(seed)

    def objective(x: Any, power: float) -> tuple[float, Any]:
        # log(sum z^-p)/p for z = |m^H h|^2/|m|^2, and its gradient in Re m and Im m.
        beam = x[:chains] + 1j * x[chains:]
        received = beam.conj() @ effective
        logs = np.log(np.abs(received) ** 2 / np.vdot(beam, beam).real)
        shifted = np.exp(-power * (logs - logs.min()))
        parts = shifted / shifted.sum()
        slope = beam / np.vdot(beam, beam).real - effective @ (parts / received)
        return float(np.log(shifted.sum()) / power - logs.min()), 2.0 * np.concatenate(
            [slope.real, slope.imag]
        )

    best = 0.0
    for _ in range(starts):
        x = rng.standard_normal(2 * chains)
        for power in (4.0, 16.0, 64.0, 256.0):
            x = minimize(objective, x, (power,), jac=True, method="L-BFGS-B").x
        beam = x[:chains] + 1j * x[chains:]
        scores = np.abs(beam.conj() @ effective) ** 2 / np.vdot(beam, beam).real
        best = max(best, float(scores.min()))
    return best


class TestAllDevices:
    def test_beams_of_arrays_are_as_good_as_those_of_an_independent_solver(self) -> None:
        for seed in range(3):
            found = design_for_all(Scenario.paper(8, 4, 4, 0.0, seed), "mimo-mn-plus")
            assert found.scores.min() == pytest.approx(1.0, rel=1e-6)
            assert max_min(found.effective, 12, seed) <= 1.02

    @pytest.mark.parametrize("method", ["airpass-plus", "airpass", "mimo-mn-plus"])
    def test_serves_all(self, method: str) -> None:
        scenario = Scenario.paper(8, 4, 4, 0.0, 3)
        plain = design(scenario, method)
        found = design_for_all(scenario, method)
        assert plain.selected_count < found.selected_count == 8
        assert found.mse <= found.scenario.radio.mse_threshold
        assert found.mse_threshold == found.scenario.radio.mse_threshold
        assert found.mse == pytest.approx(found.mse_threshold, rel=1e-6)
        # A design with the whole weights selects all devices at the threshold that was found.
        assert found.weakest_score == pytest.approx(1.0, rel=1e-6)
        weakest = float(np.sqrt(plain.scores.min()))
        assert found.mse <= scenario.radio.mse_threshold / weakest**2

    def test_the_error_is_near_the_best_of_many_searches(self) -> None:
        scenario = Scenario.paper(4, 3, 3, 0.0, 5)
        found = design_for_all(scenario)
        threshold = 0.9 * found.scenario.radio.mse_threshold
        for seed in range(4):
            assert design(scenario.with_radio(mse_threshold=threshold), seed=seed).selected_count < 4

    def test_devices_without_priority_are_left_out(self) -> None:
        scenario = Scenario.paper(8, 4, 4, 0.0, 3).with_priorities([1, 1, 0, 0, 0, 0, 0, 0])
        found = design_for_all(scenario, FAST)
        assert found.selected[:2].all()
        assert found.mse < 0.5 * design_for_all(scenario.with_priorities(1.0), FAST).mse
        with pytest.raises(InvalidInput, match="no design for all devices"):
            design_for_all(Scenario.paper(4, 2, 2, -90.0), FAST)

    def test_command(self, run: Any, tmp_path: Path) -> None:
        scenario = ["--devices", 6, "--waveguides", 3, "--antennas", 3, "--snr-db", 0, "--seed", 2]
        done = run("design", *scenario, "--all-devices", "--effort", "fast", "--json", tmp_path / "d.json")
        assert "selected 6 of 6" in done.out
        assert load(tmp_path / "d.json").selected_count == 6
        for flags in (("--turns", 2), ("--for-draws", 2), ("--start", tmp_path / "d.json")):
            assert_refused(run("design", *scenario, "--all-devices", *flags), flags[0], "--all-devices")
        common = ["--rounds", 1, "--evaluate-every", 1, "--workers", 1, "--scheme", "mimo-mn-plus"]
        trained = run("train", *scenario, *common, "--all-devices", "--json", tmp_path / "t.json")
        assert trained.code == 0
        (entry,) = json.loads((tmp_path / "t.json").read_text())["runs"]
        assert entry["history"][-1]["selected_count"] == 6
        assert_refused(run("train", *scenario, "--all-devices", "--turns", 2), "--all-devices", "--turns")


class TestResults:
    def test_saved_and_opened(self, book: Book, tmp_path: Path) -> None:
        path = tmp_path / "book.json"
        book.save(path)
        document = json.loads(path.read_text())
        assert (document["kind"], document["format_version"]) == ("book", 2)
        assert document["shares"] == book.shares.tolist()
        selected = np.array([one["selected"] for one in document["designs"]])
        assert document["covered"] == selected.sum(axis=0).tolist() == book.covered.tolist()
        assert len(document["designs"]) == document["turns"] == book.turns
        again = load(path)
        assert isinstance(again, Book)
        for one, other in zip(again.designs, book.designs, strict=True):
            assert one.scores.tobytes() == other.scores.tobytes()
        assert (again.unservable == book.unservable).all()
        assert again.move == book.move
        assert repr(again) == repr(book)
        document["shares"][0][0] += 0.1
        del document["sha256"]
        path.write_text(json.dumps(document))
        with pytest.raises(InvalidInput, match="shares do not follow"):
            load(path)

    def test_frame_and_picture(self, book: Book, tmp_path: Path) -> None:
        frame = book.to_frame()
        assert len(frame) == book.turns * 8
        np.testing.assert_allclose(frame.groupby("device").share.sum(), book.served)
        figure = book.plot(tmp_path / "book.png")
        assert (tmp_path / "book.png").stat().st_size > 0
        heights = [bar.get_height() for bar in figure.axes[1].patches]
        assert heights == book.cycle_scores.tolist()

    def test_command(self, run: Any, tmp_path: Path) -> None:
        scenario = ["--devices", 6, "--waveguides", 3, "--antennas", 3, "--snr-db", 8, "--seed", 2]
        path, picture = tmp_path / "b.json", tmp_path / "b.png"
        done = run("schedule", *scenario, "--json", path, "--figure", picture)
        assert done.code == 0
        stored = load(path)
        assert f"{stored.turns} turn" in done.out
        assert picture.exists()
        assert run("show", path).out.splitlines()[0] == done.out.splitlines()[0]
        assert run("plot", path, "--out", tmp_path / "again.png").code == 0
        limited = run("design", *scenario, "--effort", "fast", "--turns", 2, "--move", "beams", "--json", "-")
        document = json.loads(limited.out)
        assert (document["kind"], document["turns"], document["move"]) == ("book", 2, "beams")
        assert_refused(run("schedule", *scenario, "--turns", "few"), "--turns few", "auto")
        assert_refused(run("schedule", *scenario, "--turns", 0), "turns = 0")
        assert_refused(run("design", *scenario, "--turns", 2, "--certify"), "--certify", "--turns")
        for flags in (("--life",), ("--displacement-mm", 1), ("--tolerance-mm", 1), ("--for-draws", 2)):
            assert_refused(run("design", *scenario, "--turns", 2, *flags), flags[0], "--turns")
        assert_refused(run("design", *scenario, "--move", "beams"), "--move requires --turns")


def sent_over(link: Link, updates: Single, options: aggregation.LinkOptions, seed: int = 0) -> Any:
    return aggregation.over_the_air(
        updates[link.selected],
        [updates.shape[1]],
        link,
        options,
        np.random.default_rng(seed),
        np.random.default_rng(seed + 1),
    )


def quiet(link: Any) -> Any:
    """The same link with almost no noise: the budget only appears in scores and noise power."""
    return replace(link, budget=link.budget * 1e24)


class TestWeights:
    """The average of the aggregates over a cycle is FedAvg's."""

    @pytest.mark.parametrize("statistics", ["device", "pooled"])
    @settings(max_examples=10)
    @given(seed=st.integers(0, 2**32))
    def test_unbiased_without_noise(self, book: Book, beams: Book, statistics: str, seed: int) -> None:
        updates = np.random.default_rng(seed).standard_normal((8, 31)).astype(np.float32)
        options = aggregation.LinkOptions(statistics=statistics)
        for one in (book, beams):
            served = one.served
            expected = aggregation.weighted_mean(updates[served], one.scenario.weights[served])
            total = sum(sent_over(quiet(link), updates, options).update for link in one.links)
            np.testing.assert_allclose(total / one.turns, expected, rtol=1e-4, atol=1e-5)

    def test_unbiased_with_noise(self, book: Book) -> None:
        # Every entry of the mean of n cycles has the variance s^2/n, with s estimated from the cycles; over
        # 31 entries, a deviation of 4.5 standard errors has a probability below 3e-4.
        updates = np.random.default_rng(0).standard_normal((8, 31)).astype(np.float32)
        served = book.served
        expected = aggregation.weighted_mean(updates[served], book.scenario.weights[served])
        options = aggregation.LinkOptions()
        cycles = np.array(
            [
                np.mean(
                    [
                        sent_over(link, updates, options, 1000 * number + 2 * link.turn).update
                        for link in book.links
                    ],
                    axis=0,
                )
                for number in range(400)
            ],
            dtype=np.float64,
        )
        error = cycles.std(axis=0, ddof=1) / np.sqrt(len(cycles))
        assert (np.abs(cycles.mean(axis=0) - expected) < 4.5 * error).all()

    def test_errors_and_powers_stay_within_their_limits(self, book: Book, beams: Book) -> None:
        for one in (book, beams):
            for link in one.links:
                assert (link.selected == one.served).all()
                assert (link.scores[one.served] >= one.cycle_scores[one.served].min() * (1.0 - 1e-9)).all()
                assert link.mse <= one.scenario.radio.mse_threshold * (1.0 + 1e-9)
                assert (np.abs(link.transmit) ** 2 <= link.power * (1.0 + 1e-9)).all()
            total = sum(np.where(link.selected, link.weights, 0.0) for link in one.links)
            np.testing.assert_allclose(total, np.where(one.served, one.scenario.weights, 0.0))

    def test_one_turn_is_the_design(self) -> None:
        found = book_for(2, 12.0, turns=1)
        assert found.designs[0].selected_count == 8
        updates = np.random.default_rng(1).standard_normal((8, 12)).astype(np.float32)
        options = aggregation.LinkOptions()
        one, other = (sent_over(link, updates, options) for link in (found.links[0], found.designs[0]))
        np.testing.assert_allclose(one.update, other.update, rtol=1e-6)

    @pytest.mark.parametrize("normalise", ["tensor", "vector"])
    def test_power_limits_hold(self, book: Book, normalise: str) -> None:
        updates = np.random.default_rng(2).standard_normal((8, 60)).astype(np.float32)
        updates *= np.linspace(0.1, 3.0, 8, dtype=np.float32)[:, None]
        for link in book.links:
            sent = sent_over(link, updates, aggregation.LinkOptions(normalise=normalise))
            assert sent.power.max() <= 1.0 + 1e-9


class TestTraining:
    OPTIONS = TrainOptions(rounds=5, evaluate_every=1, test_images=50, probe_images=20)

    @pytest.fixture
    def prepared(self) -> Any:
        return prepare(Scenario.paper(8, 4, 4, 3.0, 2), "mnist-mini")

    def test_rounds_go_through_the_book(self, prepared: Any, tmp_path: Path) -> None:
        scenario, data = prepared
        found = schedule(scenario, method=FAST)
        assert found.turns > 1
        run = train(found, data, options=self.OPTIONS, workers=1)
        assert [record.turn for record in run.history] == [0] + [r % found.turns + 1 for r in range(5)]
        assert [record.selected_count for record in run.history[1:]] == [8] * 5
        limit = scenario.radio.mse_threshold
        for record in run.history[1:]:
            assert record.largest_power <= 1.0 + 1e-9
            assert record.measured_mse == pytest.approx(record.predicted_mse, rel=0.2)
        assert max(record.predicted_mse for record in run.history[1:]) <= 1.5 * limit
        assert run.book is found
        assert run.scheme == "airpass-plus"
        run.save(tmp_path / "run.json")
        (again,) = load(tmp_path / "run.json")
        assert [record.turn for record in again.history] == [record.turn for record in run.history]
        assert again.book.shares.tolist() == found.shares.tolist()

    def test_resumes_in_the_right_turn(self, prepared: Any, tmp_path: Path) -> None:
        scenario, data = prepared
        found = schedule(scenario, 3, method=FAST)
        whole = train(found, data, options=self.OPTIONS, workers=1)
        place = tmp_path / "c.npz"
        train(found, data, options=replace(self.OPTIONS, rounds=2), workers=1, checkpoint=place)
        rest = train(found, data, options=self.OPTIONS, workers=1, checkpoint=place, resume=True)
        assert rest.state.tobytes() == whole.state.tobytes()
        other = schedule(scenario, 2, method=FAST)
        with pytest.raises(InvalidInput, match="turns"):
            train(other, data, options=self.OPTIONS, workers=1, checkpoint=place, resume=True)

    def test_comparison(self, prepared: Any) -> None:
        scenario, data = prepared
        options = replace(self.OPTIONS, rounds=2)
        runs = compare(scenario, ["fedavg", "airpass-plus"], data, options, workers=1, turns=2, move="beams")
        assert [None if run.book is None else run.book.turns for run in runs] == [None, 2]
        assert runs[1].book is not None
        assert runs[1].book.move == "beams"

    def test_redraws_need_a_design(self, book: Book) -> None:
        with pytest.raises(InvalidInput, match="redraw_every"):
            train(book, options=replace(self.OPTIONS, redraw_every=2))

    def test_command(self, run: Any, tmp_path: Path) -> None:
        scenario = ["--devices", 6, "--waveguides", 3, "--antennas", 3, "--snr-db", 8, "--seed", 2]
        common = ["--rounds", 2, "--evaluate-every", 1, "--workers", 1]
        done = run(
            "train", *scenario, *common, "--scheme", "airpass-plus", "--turns", 2, "--out", tmp_path / "a",
            "--json", tmp_path / "t.json",
        )  # fmt: skip
        assert done.code == 0
        (entry,) = json.loads((tmp_path / "t.json").read_text())["runs"]
        assert [row["turn"] for row in entry["history"]] == [0, 1, 2]
        assert run("schedule", *scenario, "--turns", 2, "--json", tmp_path / "b.json").code == 0
        over = run("train", "--design", tmp_path / "b.json", *common, "--out", tmp_path / "b")
        assert over.code == 0
        assert load(tmp_path / "b")[0].book.turns == 2
        assert_refused(run("train", "--move", "beams", *common), "--move requires --turns")

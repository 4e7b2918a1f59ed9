"""Rounds over the air without a training loop, as bridges to other frameworks use them."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from airpass import (
    Book,
    Design,
    InvalidInput,
    Link,
    Scenario,
    WidebandLink,
    design,
    schedule,
    select,
    select_draws,
)
from airpass.core.randomness import Purpose, stream
from airpass.core.types import Single
from airpass.learning import aggregation
from airpass.learning.aggregation import LinkOptions
from airpass.learning.air_rounds import AirRounds
from airpass.learning.subcarriers import over_subcarriers

SHAPES = [(4, 3), (5,), (), (0, 2), (2, 1, 3)]
SIZES = [12, 5, 1, 6]
SEED = 5


@pytest.fixture(scope="module")
def link() -> Design:
    """Twelve devices with different weights; five to eleven are selected."""
    scenario = Scenario.paper(devices=12, waveguides=6, antennas=4, snr_db=-2.0, seed=3)
    scenario = scenario.with_samples(np.arange(40, 160, 10))
    found = design(scenario, "airpass-plus")
    assert 5 <= found.selected_count < 12
    return found


@pytest.fixture(scope="module")
def book() -> Book:
    """Three turns of different weights; seven of twelve devices are served."""
    return schedule(Scenario.paper(devices=12, waveguides=4, antennas=3, snr_db=-7.0, seed=4), turns=3)


def drawn(devices: Sequence[int], seed: int = 0) -> dict[int, list[Single]]:
    rng = np.random.default_rng(seed)
    return {
        k: [rng.normal(0.01 * k, 0.1 + 0.01 * k, shape).astype(np.float32) for shape in SHAPES]
        for k in devices
    }


def flat(arrays: Sequence[Any]) -> Single:
    return np.concatenate([np.ravel(array) for array in arrays]).astype(np.float32)


def directly(link: Link, updates: dict[int, list[Single]], number: int, options: LinkOptions) -> Any:
    rows = np.stack([flat(updates[k]) for k in sorted(updates)])
    streams = stream(SEED, Purpose.NOISE, number), stream(SEED, Purpose.CHANNEL_ERROR, number)
    if isinstance(link, WidebandLink):
        return over_subcarriers(rows, SIZES, link, options, *streams)
    return aggregation.over_the_air(rows, SIZES, link, options, *streams)


@pytest.mark.parametrize(
    "options", [LinkOptions(), LinkOptions("vector", "pooled", channel_error=0.1, phase_error_deg=10.0)]
)
def test_it_is_the_aggregation_of_training(link: Design, options: LinkOptions) -> None:
    air = AirRounds(link, options, SEED)
    assert air.devices == 12
    for number in (1, 2):
        updates = drawn(air.selected(number), number)
        mean, done = air.aggregate(number, updates)
        sent = directly(link, updates, number, options)
        assert [array.shape for array in mean] == SHAPES
        np.testing.assert_array_equal(flat(mean), sent.update)
        assert (done.predicted_mse, done.measured_mse) == (sent.predicted_mse, sent.measured_mse)
        np.testing.assert_array_equal(done.power, sent.power)
        assert done.senders == done.selected == tuple(np.flatnonzero(link.selected))
        assert done.number == number
        assert done.metrics["senders"] == link.selected_count
        assert done.predicted_sdr_db == pytest.approx(
            10.0 * np.log10(np.sum(link.weights[link.selected] ** 2) / sent.predicted_mse)
        )


def test_the_order_of_updates_does_not_matter(link: Design) -> None:
    air = AirRounds(link, seed=SEED)
    updates = drawn(air.selected(1))
    mean, _ = air.aggregate(1, updates)
    again, _ = air.aggregate(1, dict(reversed(updates.items())))
    np.testing.assert_array_equal(flat(mean), flat(again))


def test_the_seed_of_a_design_is_that_of_its_devices(link: Design) -> None:
    assert AirRounds(link).seed == 3
    assert AirRounds([link]).seed == 0


def test_a_book_by_turns(book: Book) -> None:
    air = AirRounds(book, seed=SEED)
    assert AirRounds(book).seed == 4
    assert [one.selected_count for one in book.links] == [7, 7, 7]
    assert np.abs(book.links[0].weights - book.links[1].weights).max() > 0.0
    for number in range(1, 7):
        one = book.links[(number - 1) % 3]
        updates = drawn(air.selected(number), number)
        mean, _ = air.aggregate(number, updates)
        np.testing.assert_array_equal(flat(mean), directly(one, updates, number, LinkOptions()).update)


def test_draws_are_taken_in_turn() -> None:
    rng = np.random.default_rng(0)
    channels = rng.standard_normal((3, 4, 12)) + 1j * rng.standard_normal((3, 4, 12))
    draws = select_draws(channels, snr_db=10.0, mse_threshold=0.5)
    air = AirRounds(draws)
    for number in range(1, 6):
        assert air.selected(number) == tuple(np.flatnonzero(draws[(number - 1) % 3].selected))


def test_subcarriers(link: Design) -> None:
    rng = np.random.default_rng(1)
    channels = rng.standard_normal((4, 3, 12)) + 1j * rng.standard_normal((4, 3, 12))
    beam = channels.sum(axis=2)
    beam /= np.linalg.norm(beam, axis=1)[:, None]
    for rule in ("worst", "mean"):
        wide = WidebandLink(channels, link.weights, beam, 1e-1, 1.0, 0.5, rule=rule)
        air = AirRounds(wide, seed=SEED)
        assert len(air.selected(1)) >= 5
        updates = drawn(air.selected(1))
        mean, _ = air.aggregate(1, updates)
        np.testing.assert_array_equal(flat(mean), directly(wide, updates, 1, LinkOptions()).update)
        some = {k: updates[k] for k in air.selected(1)[1:4]}
        _, done = air.aggregate(1, some)
        assert done.senders == tuple(some)
        present = np.isin(np.arange(12), list(some))
        partial = wide.among(present)
        assert partial.mse <= wide.mse
        assert partial.rule == rule
        alone = WidebandLink(channels[:, :, present], link.weights[present], beam, 1e-1, 1.0, 0.5, rule=rule)
        assert partial.mse == pytest.approx(alone.mse, rel=1e-12)
        assert partial.divisor == pytest.approx(alone.divisor, rel=1e-12)


class TestPartialParticipation:
    def test_it_is_the_aggregation_of_a_link_with_those_devices_only(self, link: Design) -> None:
        air = AirRounds(link, seed=SEED)
        selected = air.selected(1)
        for senders in (selected[:-1], selected[1::2], selected[2:3]):
            present = np.isin(np.arange(12), senders)
            alone = Link(
                link.channels[:, present],
                link.weights[present],
                link.beam,
                link.budget,
                link.power,
                link.mse_threshold,
            )
            assert alone.selected.all()
            updates = drawn(senders)
            mean, done = air.aggregate(1, updates)
            # Without channel errors the streams do not depend on the number of devices.
            sent = directly(alone, updates, 1, LinkOptions())
            np.testing.assert_allclose(flat(mean), sent.update, rtol=0, atol=1e-7)
            assert done.predicted_mse == pytest.approx(sent.predicted_mse, rel=1e-12)
            assert done.senders == senders
            assert done.selected == selected
            np.testing.assert_allclose(done.power, sent.power, rtol=1e-12)

    def test_the_denoising_factor_is_that_of_the_senders(self, link: Design) -> None:
        weakest = int(np.argmin(np.where(link.selected, link.scores, np.inf)))
        present = np.arange(12) != weakest
        partial = link.among(present)
        senders = link.selected & present
        gains = np.abs(np.conj(link.beam) @ link.channels[:, senders])
        assert partial.denoising_factor == pytest.approx(
            link.power * np.min((gains / link.weights[senders]) ** 2), rel=1e-12
        )
        assert partial.denoising_factor > link.denoising_factor
        assert partial.mse < link.mse
        np.testing.assert_array_equal(partial.selected, senders)
        assert partial.selected_count == link.selected_count - 1

    def test_the_divisor_of_a_turn_has_the_part_of_the_senders(self, book: Book) -> None:
        turn = book.links[1]
        present = turn.selected.copy()
        present[np.flatnonzero(present)[0]] = False
        part = turn.weights[present].sum() / turn.weights[turn.selected].sum()
        assert turn.among(present).divisor == pytest.approx(turn.divisor * part)
        assert turn.among(turn.selected).divisor == pytest.approx(turn.divisor)
        assert turn.among(~turn.selected).divisor == 0.0

    def test_no_device(self, link: Design) -> None:
        air = AirRounds(link)
        with pytest.raises(InvalidInput, match="no device sends in round 4; keep the global model"):
            air.aggregate(4, {})
        done = air.silent(4)
        assert done.senders == ()
        assert done.selected == air.selected(4)
        assert np.isnan(done.largest_power)
        assert np.isnan(done.metrics["measured-mse"])


class TestRefused:
    def test_a_device_that_is_not_selected(self, link: Design) -> None:
        other = int(np.flatnonzero(~link.selected)[0])
        with pytest.raises(InvalidInput, match=f"device {other} is not selected in round 2; leave it out"):
            AirRounds(link).aggregate(2, drawn([other]))

    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
    def test_numbers_that_are_not_finite(self, link: Design, value: float) -> None:
        air = AirRounds(link)
        updates: dict[int, Any] = dict(drawn(air.selected(1)))
        device = air.selected(1)[1]
        updates[device] = [np.full(shape, value) for shape in SHAPES]
        with pytest.raises(InvalidInput, match=f"that of device {device} is not finite"):
            air.aggregate(1, updates)

    def test_a_sum_that_is_too_large(self, link: Design) -> None:
        air = AirRounds(link)
        signs = np.where(np.arange(400) % 2, 3e38, -3e38).astype(np.float32)
        with pytest.raises(InvalidInput, match="too large for single precision"):
            air.aggregate(1, {k: [signs] for k in air.selected(1)})

    def test_other_shapes_integers_and_nothing(self, link: Design) -> None:
        air = AirRounds(link)
        first, second, *_ = air.selected(1)
        with pytest.raises(InvalidInput, match=f"that of device {second} has other shapes"):
            air.aggregate(1, {first: [np.ones(3)], second: [np.ones((3, 1))]})
        with pytest.raises(InvalidInput, match="without floating-point numbers"):
            air.aggregate(1, {first: [np.ones(3, int)]})
        for nothing in ([], [np.empty((0, 3))]):
            with pytest.raises(InvalidInput, match="have no entries"):
                air.aggregate(1, {first: nothing})

    def test_links(self, link: Design) -> None:
        given: Any
        for given in (None, "airpass", 3):
            with pytest.raises(InvalidInput, match="must be a Link"):
                AirRounds(given)
        with pytest.raises(InvalidInput, match="must be a link, a sequence"):
            AirRounds([])
        with pytest.raises(InvalidInput, match="give mse_threshold"):
            AirRounds(replace(select(link.channels, budget=1.0), mse_threshold=None))
        with pytest.raises(InvalidInput, match="seed"):
            AirRounds(link, seed=-1)
        with pytest.raises(InvalidInput, match="round"):
            AirRounds(link).selected(0)
        given = "tensor"
        with pytest.raises(InvalidInput, match="options"):
            AirRounds(link, given)


def test_it_does_not_import_torch() -> None:
    code = "import sys; import airpass.learning.air_rounds; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("module", "needed"), [("flower", "flwr"), ("pfl", "pfl")])
def test_bridges_without_their_framework(module: str, needed: str) -> None:
    if find_spec(needed) is not None:
        pytest.skip(f"{needed} is installed")
    with pytest.raises(InvalidInput, match=rf"is not installed: pip install 'airpass\[{module}\]'"):
        import_module(f"airpass.{module}")

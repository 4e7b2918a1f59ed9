"""A policy that decides in every round which devices to serve next, by virtual queues.

A book of designs (`airpass.designs.turns`) needs channels that do not change. Here every device k has a debt
q_k instead, which starts at zero. It grows by the target share a in every round, and falls by up to one when
the device takes part. With the sets S_r of the devices that take part,

    o_k = q_k + a            what device k owes in round r
    s_k = min(o_k, 1)        what it pays if k is in S_r; zero if not
    q_k <- o_k - s_k         that is max(q_k + a - 1{k in S_r}, 0).

Which devices. The sum of squared debts after the round, weighted by priorities v_k (one each by default), is

    sum_k v_k (o_k - s_k)^2  =  sum_k v_k o_k^2 - 2 sum_{k in S_r} v_k h(o_k),   h(o) = o s - s^2/2,

with h(o) = o^2/2 for o <= 1 and o - 1/2 above. So the set that makes it smallest is the selection, or the
design, with priorities v_k h(o_k). This is the max-weight rule, which greedily minimises the Lyapunov drift:
it maximises sum v_k o_k over S_r up to a constant, and keeps all queues bounded if some way of choosing sets
gives every device a share larger than a [Tassiulas and Ephremides 1992; Neely 2010].

Weights. Device k sends with the weight phi_k n_k, where n_k = s_k/a is the number of rounds that it makes up
for, 1 <= n_k <= 1/a; n_k = 1 if it takes part in every round. What it has sent after R rounds is

    sum_r phi_k n_{k,r}  =  phi_k/a sum_r s_{k,r}  =  phi_k (R - q_k(R)/a),

without any estimate: the debts telescope. The server divides by Phi, the sum of phi_k over the devices that
have taken part so far. For updates Delta_k that do not change, the average of all aggregates is therefore
sum_k phi_k Delta_k (1 - q_k(R)/(a R))/Phi, which tends to FedAvg's aggregate of these devices as 1/R if the
queues are bounded. Updates do change: n_k times the latest update replaces the n_k updates that are missing.

Power and noise. The link has the weights phi_k n_k/N, N the largest n_k in S_r, and the divisor Phi/N. They
are at most phi_k. So all devices of a selection that was made with phi_k keep a score z_k >= 1, the error of
the sum stays within eps, and b_k within the power limit. The error of the mean has the variance e_r N^2/Phi^2
with e_r <= eps and N <= 1/a: as with turns, missing data are bought with noise. If the links were designed
for weights phi_k n_k > phi_k instead, a device would become weaker the longer it waits.

Debts are cut off at `largest_debt`, so that a device that cannot be served for a long time does not take up
all rounds afterwards. Only then does its data count less. A device that no beam can serve in a round, by an
upper bound on its score, has priority zero in it.

If all devices can be served together, all debts stay zero, priorities stay equal, and every round is the
plain selection with the plain weights.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from airpass import aircomp
from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Method, discard
from airpass.core.threads import one_blas_thread
from airpass.core.types import Complex, Mask, Real
from airpass.designs.api import design, design_method
from airpass.designs.base import DesignMethod
from airpass.designs.bounds import score_bounds
from airpass.designs.moving import Moving
from airpass.designs.round_links import RoundLink, RoundLinks
from airpass.designs.track import Receiver, quick
from airpass.designs.turns import MOVES
from airpass.scenario import Scenario
from airpass.scenario.motion import displaced
from airpass.selection.api import Draws, checked_priorities, select_draws
from airpass.selection.base import SelectionMethod
from airpass.selection.hrmc_plus import HrmcPlus, regrow

ROUNDING = 1e-9  # relative tolerance of bounds on scores


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QueueLink(RoundLink):
    """The link of a round in which devices make up for the rounds that they missed.

    Parameters
    ----------
    plain
        The link with the weights phi_k, whose selected devices send.
    mean_divisor
        What the received sum is divided by.
    """

    plain: Link
    mean_divisor: float

    @cached_property
    def selected(self) -> Mask:
        """The devices of the plain link, although smaller weights might let others send as well."""
        return self.plain.selected

    @property
    def divisor(self) -> float:
        """Phi/N."""
        return self.mean_divisor


class Debts:
    """The queues of all devices.

    Parameters
    ----------
    share
        a, of every device, or one per device.
    priorities
        v_k, shape (K,).
    largest
        Debts are cut off here.
    """

    def __init__(self, share: float | Real, priorities: Real, largest: float) -> None:
        self.share = np.broadcast_to(np.asarray(share, dtype=np.float64), priorities.shape)
        self.priorities = priorities
        self.largest = largest
        self.debts = np.zeros(priorities.size)
        self.served = np.zeros(priorities.size, dtype=bool)  # devices that have taken part so far

    def values(self, reachable: Mask) -> Real:
        """Priorities v_k h(o_k) of a round.

        Parameters
        ----------
        reachable
            Devices that can be served at all in this round, shape (K,). The others have priority zero.

        Returns
        -------
        Real
            The priorities; v_k if all are zero.
        """
        owed = self.debts + self.share
        paid = np.minimum(owed, 1.0)
        values: Real = np.where(reachable, self.priorities * (owed - paid / 2.0) * paid, 0.0)
        return values if values.any() else self.priorities

    def pay(self, senders: Mask) -> Real:
        """Account for a round.

        Parameters
        ----------
        senders
            The devices that take part, shape (K,).

        Returns
        -------
        Real
            n_k, the number of rounds that each makes up for; zero for devices that do not take part.
        """
        owed = self.debts + self.share
        paid = np.where(senders, np.minimum(owed, 1.0), 0.0)
        self.debts = np.minimum(owed - paid, self.largest)
        self.served |= senders
        made_up: Real = paid / self.share
        return made_up

    def link(self, link: Link, method: Method) -> QueueLink:
        """Account for a round, and give its link.

        Parameters
        ----------
        link
            Channels, plain weights and beam.
        method
            The method that found the beam.

        Returns
        -------
        QueueLink
            The link with the weights phi_k n_k/N.
        """
        senders, plain = link.selected, link.weights
        made_up = self.pay(senders)
        most = float(made_up.max()) if senders.any() else 1.0
        return QueueLink(
            channels=link.channels,
            weights=np.where(senders, plain * (made_up / most), plain),
            beam=link.beam,
            budget=link.budget,
            power=link.power,
            mse_threshold=link.mse_threshold,
            method=method,
            plain=link,
            mean_divisor=float(plain[self.served].sum()) / most if self.served.any() else 1.0,
        )


@dataclass(frozen=True)
class Queues:
    """Serve the devices with the largest debts, round by round.

    Parameters
    ----------
    share
        Target share a of the rounds in which every device takes part. A device makes up for at most 1/a
        missed rounds at once.
    largest_debt
        Debts are cut off here.
    """

    share: float = 0.2  # docs/howto/policies.md
    largest_debt: float = 4.0  # full payments

    def __post_init__(self) -> None:
        if checks.positive("share", self.share) > 1.0:
            raise InvalidInput(f"share = {self.share:g}: must be <= 1")
        checks.at_least("largest_debt", self.largest_debt, 1.0)

    def draws(
        self,
        channels: Any,
        rounds: int,
        weights: Any = None,
        budget: float | None = None,
        method: str | SelectionMethod | type[SelectionMethod] | Callable[..., Any] = "hrmc",
        *,
        snr_db: float | None = None,
        mse_threshold: float | None = None,
        power: float = 1.0,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
        priorities: Any = None,
    ) -> RoundLinks:
        """Links for `airpass.train` over given channels.

        Parameters
        ----------
        channels
            Complex, shape (T, M, K): round r = 1, 2, ... has draw (r - 1) mod T. A matrix (M, K) is one draw.
        rounds
            Number of rounds.
        weights, budget, method, snr_db, mse_threshold, power, options, seed
            As for `select`. The method must be able to use priorities.
        priorities
            v_k >= 0, by which squared debts are weighted; one each if not given.

        Returns
        -------
        RoundLinks
            A sequence of links, each computed when it is first used.
        """
        draws = select_draws(
            channels,
            weights,
            budget,
            method,
            snr_db=snr_db,
            mse_threshold=mse_threshold,
            power=power,
            options=options,
            seed=seed,
        )
        chosen, count = draws.method, draws.weights.size
        if not _uses_priorities(chosen):
            raise InvalidInput(
                f"policy: {chosen.name} cannot use priorities, which queues need; hrmc and hrmc+ can"
            )
        worth = np.ones(count) if priorities is None else checked_priorities(priorities, count)
        return RoundLinks(
            partial(self._over_draws, draws, worth),
            checks.whole("rounds", rounds, 1),
            {"policy": self.to_dict(), "priorities": worth.tolist(), "draws": len(draws)},
        )

    def links(
        self,
        scenario: Scenario,
        rounds: int,
        method: str | DesignMethod | type[DesignMethod] | Callable[..., Any] | None = None,
        *,
        move: str = "antennas",
        moving: Moving | None = None,
        seed: int | None = None,
    ) -> RoundLinks:
        """Links for `airpass.train` in a room.

        Parameters
        ----------
        scenario
            Receiver, radio, devices and weights. Squared debts are weighted by the devices' priorities.
        rounds
            Number of rounds.
        method
            Design method, as for `design`. It must be able to use priorities.
        move
            For static devices: "antennas" finds a layout and a beam for every round; with "beams" the
            layout of the first design stays. Arrays always stay.
        moving
            Duration of a round, motion of the devices, and how antennas follow. None: devices
            do not move.
        seed
            Seed of the searches. Default: that of the scenario.

        Returns
        -------
        RoundLinks
            A sequence of links, each computed when it is first used.
        """
        scenario.require_one_carrier("a policy")
        chosen = design_method(method)
        if not (chosen.uses_priorities and _uses_priorities(getattr(chosen, "selection", None))):
            raise InvalidInput(
                f"policy: {chosen.name} cannot use priorities, which queues need; airpass-plus can"
            )
        checks.one_of("move", move, MOVES)
        checks.whole("rounds", rounds, 1)
        seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
        if moving is None:
            start = partial(self._at_rest, scenario, chosen, move, seed)
            return RoundLinks(start, rounds, {"policy": self.to_dict() | {"move": move}})
        start = partial(self._in_motion, scenario, rounds, chosen, moving, seed)
        return RoundLinks(start, rounds, {"policy": self.to_dict(), "motion": moving.to_dict()})

    def to_dict(self) -> dict[str, Any]:
        """Name and options as plain data."""
        return {"name": "queues", **asdict(self)}

    def _start(self, priorities: Real) -> Debts:
        return Debts(self.share, priorities, self.largest_debt)

    def _over_draws(self, draws: Draws, priorities: Real) -> Iterator[Link]:
        """Links over given channels."""
        debts, number = self._start(priorities), 0
        while True:
            matrix = draws.channels[number % len(draws)]
            effective = aircomp.effective_channels(matrix, draws.weights, draws.budget)
            values = debts.values(_within_reach(effective))
            plain = replace(draws, channels=matrix[None], priorities=values)[0]
            yield debts.link(plain, draws.method)
            number += 1

    def _in_motion(
        self, scenario: Scenario, rounds: int, method: DesignMethod, moving: Moving, seed: int
    ) -> Iterator[Link]:
        """Links for devices that move. Layouts and beams are found for the debts of the next round."""
        debts = self._start(scenario.priorities)
        receiver = replace(moving.receiver(scenario, method, seed), anew=True)
        for step, places in enumerate(moving.places(scenario, rounds)):
            with one_blas_thread():
                reachable = _reachable(receiver, displaced(scenario, places))
                receiver.scenario = scenario.with_priorities(debts.values(reachable))
                receiver.advance(places)
            if step % moving.steps == 0:
                yield debts.link(receiver.link, method)

    def _at_rest(self, scenario: Scenario, method: DesignMethod, move: str, seed: int) -> Iterator[Link]:
        """Links for devices that rest. The best of all beams and layouts so far is tried first."""
        debts = self._start(scenario.priorities)
        with one_blas_thread():
            first = design(scenario, method, seed=seed)
            if first.layout is None:
                search: _Search = _ArraySearch(scenario, method, seed)
                reachable = _within_reach(first.effective)
            elif move == "beams":
                search = _BeamSearch(first, seed)
                reachable = _within_reach(first.effective)
            else:
                search = _LayoutSearch(scenario, method, seed)
                reachable = score_bounds(scenario) >= 1.0 - ROUNDING
        known: dict[bytes, Link] = {first.selected.tobytes(): first}
        number = 0
        while True:
            values = debts.values(reachable | first.selected)
            best = max(known.values(), key=lambda one: float(values[one.selected].sum()))
            if values[~best.selected].any():
                with one_blas_thread():
                    found = search.links(values, best, number)
                known |= {one.selected.tobytes(): one for one in found if one.selected.tobytes() not in known}
                best = max([best, *found], key=lambda one: float(values[one.selected].sum()))
            yield debts.link(best, method)
            number += 1


def _uses_priorities(method: Any) -> bool:
    """Whether a selection method can use priorities; true for anything else."""
    return not isinstance(method, SelectionMethod) or (
        type(method).prioritised is not SelectionMethod.prioritised
    )


def _within_reach(effective: Complex) -> Mask:
    """Devices that a beam of their own can serve: ||h_k||^2 >= 1."""
    reach: Mask = np.sum(np.abs(effective) ** 2, axis=0) >= 1.0 - ROUNDING
    return reach


def _reachable(receiver: Receiver, scenario: Scenario) -> Mask:
    """Devices that a receiver can serve where they are now."""
    if receiver.step >= 0 and receiver.array is not None:
        channels = scenario.array_at(receiver.array).channels()
        return _within_reach(aircomp.effective_channels(channels, scenario.weights, scenario.budget))
    return score_bounds(scenario) >= 1.0 - ROUNDING


class _Search:
    """Searches links for given priorities, for devices that rest."""

    def links(self, values: Real, best: Link, number: int) -> list[Link]:
        """Links for the priorities of a round; `best` is the best one known, `number` that of the round."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _ArraySearch(_Search):
    """Beams of an array, by its own method."""

    scenario: Scenario
    method: DesignMethod
    seed: int

    def links(self, values: Real, best: Link, number: int) -> list[Link]:
        found = design(self.scenario.with_priorities(values), self.method, seed=self.seed)
        return [replace(found, scenario=self.scenario)]


@dataclass(frozen=True, eq=False)
class _BeamSearch(_Search):
    """Beams on a layout that stays."""

    first: Link
    seed: int

    def links(self, values: Real, best: Link, number: int) -> list[Link]:
        effective = self.first.effective
        rng = stream(self.seed, Purpose.SELECTION, number)
        beams = (regrow(effective, best.beam, values), HrmcPlus().find(effective, values, rng, discard).beam)
        one = self.first
        return [
            Link(one.channels, one.weights, beam, one.budget, one.power, one.mse_threshold) for beam in beams
        ]


@dataclass(frozen=True, eq=False)
class _LayoutSearch(_Search):
    """Layouts and beams: one from the start, one continued from the best known."""

    scenario: Scenario
    method: DesignMethod
    seed: int

    def links(self, values: Real, best: Link, number: int) -> list[Link]:
        wanted, method = self.scenario.with_priorities(values), quick(self.method)
        given: dict[str, Any] = {"start_layout": getattr(best, "layout", None)}
        if method.uses_start_beam:
            given["start_beam"] = best.beam
        fresh = design(wanted, method, seed=self.seed)
        continued = design(wanted, method, seed=self.seed, **given)
        return [replace(one, scenario=self.scenario) for one in (fresh, continued)]

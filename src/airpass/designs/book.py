"""A book of T designs that are used by turns, and the weights with which devices send in every turn.

In turn t device k has the amplitude a_{k,t} = sqrt(z_{k,t}), where z_{k,t} is its score with the whole weight
phi_k. With the share s_{k,t} of its weight it has the score (a_{k,t}/s_{k,t})^2, so it may send in that turn
if s_{k,t} <= a_{k,t}. Over a cycle its shares must add up to one. This is possible if its amplitudes do:

    A_k = sum_t a_{k,t} >= 1.

The devices with A_k >= 1 are served. A^2_k is called the cycle score. Let A be the smallest of their A_k.
The shares are as even as the error of the weakest device permits,

    s_{k,t} = min(a_{k,t}/A, l_k),   with the level l_k for which sum_t s_{k,t} = 1.

So every score is at least A^2 and the error of every turn at most eps/A^2 <= eps. A device that is selected
in r designs and too weak in all others has the share 1/r in each of the r; a device that is strong in all T
has 1/T in each.

Unbiased. The link of turn t has the weights s_{k,t} phi_k, and the received sum is divided by Phi/T; Phi is
the sum of phi_k over the served devices. For updates Delta_k that do not change during the cycle, the average
is

    1/T sum_t T/Phi sum_k s_{k,t} phi_k Delta_k  =  sum_k phi_k Delta_k/Phi,

FedAvg's aggregate over the served devices, as noise has zero mean.

Noise. The mean update of a round has the error (T/Phi)^2 eps/A^2 at most, and the average over a cycle one
T-th of it. One design with all devices is the special case in which all turns are equal: A = T min_k a_k, and
the error does not depend on T. Different designs can only improve min_k A_k/T, the smallest mean amplitude.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan

import numpy as np

from airpass.aircomp import Link
from airpass.core.results import Result
from airpass.core.types import Index, Mask, Real
from airpass.designs.api import Design
from airpass.designs.base import DesignMethod
from airpass.scenario import Scenario

LEAST_SHARE = 1e-12  # of a weight; weights of zero have no score
ROUNDING = 1e-12  # by which weights are smaller, so that scores of exactly one are not missed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TurnLink(Link):
    """The link of one turn of a book: the design's, with the divisor of its cycle.

    Parameters
    ----------
    design
        The design.
    turn
        Its number in the book, from 1.
    cycle_divisor
        What received sums are divided by, for an unbiased average over a cycle.
    """

    design: Design
    turn: int
    cycle_divisor: float

    @cached_property
    def selected(self) -> Mask:
        """The devices that the design selects."""
        return self.design.selected

    @property
    def divisor(self) -> float:
        """Phi/T."""
        return self.cycle_divisor


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Book(Result):
    """Designs that serve the devices by turns.

    Parameters
    ----------
    scenario
        Input of all designs.
    designs
        The designs, in the order of the turns. Their weights are the shares of the turn times phi_k, so that
        they select all devices that the book serves; see `shared`.
    move
        "antennas", or "beams" if all designs have the same antennas.
    least_turns
        Number of turns without which device k cannot be served, by an upper bound on its scores over all
        layouts and beams, or over all beams on an array without waveguides; shape (K,).
    seconds
        Duration of the search, without the compilation of kernels.
    seed
        Seed of the search.
    """

    scenario: Scenario
    designs: tuple[Design, ...]
    move: str
    least_turns: Index
    seconds: float
    seed: int

    @property
    def method(self) -> DesignMethod:
        """The method that found the designs."""
        return self.designs[0].method

    @property
    def turns(self) -> int:
        """Number of designs T."""
        return len(self.designs)

    @cached_property
    def covered(self) -> Index:
        """Number of designs that select device k; shape (K,)."""
        counts: Index = np.sum([one.selected for one in self.designs], axis=0, dtype=np.intp)
        return counts

    @cached_property
    def cycle_scores(self) -> Real:
        """A_k^2, the square of the sum of the amplitudes of device k; shape (K,)."""
        scores: Real = amplitudes(self.designs, self.scenario.weights).sum(axis=0) ** 2
        return scores

    @cached_property
    def served(self) -> Mask:
        """Devices that are served, those with a cycle score of at least one; shape (K,)."""
        served: Mask = self.covered > 0
        return served

    @cached_property
    def shares(self) -> Real:
        """Part of its weight that device k sends in turn t, zero if it is not served; shape (T, K)."""
        parts = np.array([one.weights for one in self.designs]) / self.scenario.weights
        shares: Real = np.where(self.served, parts, 0.0)
        return shares

    @property
    def unservable(self) -> Mask:
        """Devices that provably no book of this many turns can serve; shape (K,)."""
        unservable: Mask = ~self.served & (self.least_turns > self.turns)
        return unservable

    @property
    def missing(self) -> Mask:
        """Devices that are not served, but not proven to be unservable; shape (K,)."""
        missing: Mask = ~self.served & ~self.unservable & (self.scenario.priorities > 0.0)
        return missing

    @property
    def divisor(self) -> float:
        """Phi/T, by which the received sum of a turn is divided; NaN if no device is served."""
        return float(self.scenario.weights[self.served].sum()) / self.turns if self.served.any() else nan

    @property
    def update_mse(self) -> float:
        """Mean error of the mean update of a round, for symbols of unit power; NaN if no device is served."""
        return float(np.mean([link.mse for link in self.links])) / self.divisor**2

    @cached_property
    def links(self) -> tuple[TurnLink, ...]:
        """The link of every turn, with a divisor that makes the average over a cycle unbiased."""
        return tuple(
            TurnLink(
                channels=one.channels,
                weights=one.weights,
                beam=one.beam,
                budget=one.budget,
                power=one.power,
                mse_threshold=one.mse_threshold,
                design=one,
                turn=number,
                cycle_divisor=self.divisor if self.served.any() else 1.0,
            )
            for number, one in enumerate(self.designs, start=1)
        )

    def __repr__(self) -> str:
        return (
            f"Book({self.method.name}: {self.turns} turn{'' if self.turns == 1 else 's'}, {self.move} move, "
            f"{int(self.served.sum())} of {self.served.size} devices served)"
        )


def amplitudes(designs: Sequence[Design], weights: Real) -> Real:
    """a_{k,t}, the roots of the scores that devices have with their whole weights; shape (T, K)."""
    roots: Real = np.sqrt([one.scores for one in designs])
    parts: Real = np.array([one.weights for one in designs]) / weights
    return roots * parts


def shared(designs: Sequence[Design], weights: Real) -> tuple[Design, ...]:
    """The designs of a book with the weights of their turns.

    Parameters
    ----------
    designs
        The designs, with any weights.
    weights
        phi_k, shape (K,).

    Returns
    -------
    tuple of Design
        The same antennas and beams. Devices that are not served keep their whole weights.
    """
    roots = amplitudes(designs, weights)
    served = roots.sum(axis=0) >= 1.0
    shares = np.where(served, np.maximum(even_shares(roots, served), LEAST_SHARE) * (1.0 - ROUNDING), 1.0)
    return tuple(replace(one, weights=part * weights) for one, part in zip(designs, shares, strict=True))


def even_shares(amplitudes: Real, served: Mask) -> Real:
    """Shares of the weights that are as even as possible without a larger error.

    Parameters
    ----------
    amplitudes
        a_{k,t}, shape (T, K).
    served
        Devices that send, shape (K,).

    Returns
    -------
    Real
        s_{k,t}, shape (T, K); the columns of served devices add up to one, the others are zero.
    """
    shares = np.zeros_like(amplitudes)
    if not served.any():
        return shares
    turns = amplitudes.shape[0]
    sent = amplitudes[:, served]
    caps = np.sort(sent / sent.sum(axis=0).min(), axis=0)
    # If the j smallest caps are shares, the others have the level (1 - sum of those caps)/(T - j). The level
    # is right for the first j at which it is at most the next cap.
    before = np.concatenate([np.zeros((1, caps.shape[1])), np.cumsum(caps[:-1], axis=0)])
    levels = (1.0 - before) / (turns - np.arange(turns))[:, None]
    fits = levels <= caps * (1.0 + 1e-12)
    fits[-1] = True
    level = np.take_along_axis(levels, fits.argmax(axis=0)[None], axis=0)
    chosen = np.minimum(sent / sent.sum(axis=0).min(), level)
    shares[:, served] = chosen / chosen.sum(axis=0)
    return shares

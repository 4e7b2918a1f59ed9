"""Upper bounds on the number of selectable devices over all beams and all layouts.

`selection.certificate` bounds the number of devices for given channels. Here the antennas may move as
well: the bounds hold for every unit beam m and every layout that eqs. (6)-(8) allow. Several arguments
are used, and the smallest bound counts. Let h_{k,m} = sqrt(Gamma) g_{k,m}/phi_k and u_k = m^H h_k, so that
z_k = |u_k|^2, and let a_{k,m}(l) = sqrt(Gamma) xi gamma_k/(phi_k sqrt(N) D_{k,m}(l)) be the amplitude of one
antenna.

**Amplitudes.** The triangle inequality gives |h_{k,m}| <= s_{k,m} = sum_n a_{k,m}(l_{m,n}) and
|u_k| <= sum_m |m_m| s_{k,m}. For multipliers y_k >= 0 let w_m(l) = sum_k y_k a_{k,m}(l), and let W_m(y) be
the largest sum of w_m over N places of waveguide m with the minimum gap. By Cauchy-Schwarz over waveguides

    sum_k y_k |u_k|  <=  sum_m |m_m| W_m(y)  <=  t(y) = sqrt(sum_m W_m(y)^2).                        (A)

- With one device, y = e_k: its score is at most t(e_k)^2. If this is below one, no design selects it.
- With y_k <= 1, as 1{|u| >= 1} <= 1 - y + y |u|, the number of selected devices is at most
  sum_k (1 - y_k) + t(y). This is convex in y and is minimised by cutting planes. It holds for every y, so
  that the tolerance of the linear programs cannot invalidate it.
- If the devices of a set I are known to be selected, 0 <= y_k (|u_k| - 1) for these, so that the same
  formula holds with y_k >= 0 of any size for k in I. Every selection belongs to one case of a partition:
  which selected device has the smallest x, which has the largest, and then device by device whether it is
  selected (branch and bound). The largest bound of all cases holds. Cases with a bound below |I| cannot
  occur. Devices i, j with t(y) < y_i + y_j for some y on these two are never selected together.

W_m is bounded by cells: in a cell, a_{k,m} is at most its value at the point nearest to the device, and
places with gap g lie in cells whose indices differ by at least g/width - 1. The largest sum over such cells
is found by dynamic programming.

**Correlations.** The triangle inequality over antennas ignores that phases which suit one device do not
suit another. For a set U of devices

    sum_{k in U} z_k = sum_{m,m'} conj(m_m) m_m' sum_{n,n'} R(l_{m,n}, l_{m',n'}),
    R(p, p') = sum_{k in U} a_k(p) a_k(p') exp(-j kappa (D_k(p) - D_k(p')))    up to phases of the guides,

and the number of selected devices in U is at most the left-hand side. The correlation |R| of two places is
far below sum_k a_k(p) a_k(p') if U is large. Let r_{m'}(p) be the largest sum of |R(p, .)| over N places of
waveguide m', and T_{m,m'} for m <= m' the largest sum of r_{m'} over N places of waveguide m. As T_{m,m'}
bounds the sum of |R| over all pairs of antennas of m and m', it may be used for (m', m) too. The right-hand
side is at most sum_{m,m'} |m_m| |m_m'| T_{m,m'}, which is at most the largest eigenvalue of T.

R is computed on a grid of points at distance h. Between them b(l) = a(l) exp(-j kappa (D(l) - omega l))
differs from linear interpolation by at most e = h^2/8 sup |b''|, for any omega; with c = dD/dl and the
distance d of the device to the line of the waveguide,

    |b''|/|b| <= kappa^2 (c - omega)^2 + c^2/D^2 + kappa d^2/D^3 + |d^2/D^4 - c^2/D^2|.

An interpolated value is at most the larger one of the two grid points in modulus. Therefore |R(p, p')| is
at most its largest value at the four grid points around plus sum_k (e_k(p) a_k(p') + a_k(p) e_k(p')). The
grid sums are in single precision; (K + 8) 2^-23 sum_k a_k(p) a_k(p') covers their rounding.

A loss along the waveguides multiplies every amplitude by at most one, at each place by the same number for
all devices. It only lowers W_m and |R|, so that the bounds hold. The same is true of a channel model with a
factor of at most one for W_m, but not for |R|: then correlations are left out. Other models are refused.
With a proportional split of power all antennas get the largest share. Segments of waveguides change phase and
loss of a place for all devices alike, and selecting one only leaves out layouts, so that the bounds hold.
With responses on candidate places, a_{k,m} is their modulus, places take the place of cells, and correlations
are left out.

Bounds are rounded outwards by a relative `SLACK`, far above the rounding errors of double precision.
Layouts may exceed the limits by the tolerance of `Scenario.checked_layout`.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from airpass.channel.sampled import SampledResponse
from airpass.channel.sampled_uplink import SampledUplink
from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.registry import Report, discard
from airpass.core.threads import one_blas_thread
from airpass.core.types import Flag, Mask, Real
from airpass.designs.api import Design
from airpass.kernels.interrupts import run
from airpass.kernels.jit import kernel
from airpass.scenario import Scenario
from airpass.scenario.receiver import ROUNDING
from airpass.selection.certificate import Certificate, upper_bound

SLACK = 1e-8  # relative; bounds are rounded outwards by it
CELLS_PER_GAP = 20  # of the amplitude bound
CELLS = (400, 2000)  # fewest and most of them per waveguide
CASES = 400  # of the branch and bound
MOST_IN_CASES = 100  # devices, above which cases are left out
CUTS = 40  # cutting planes per case
LARGEST_MULTIPLIER = 20.0  # of a device that is known to be selected
GRID_PER_WAVELENGTH = 10  # of the correlation bound
BLOCKS_PER_GAP = 10  # its cells per gap
BLOCKS = (100, 500)  # fewest and most of them per waveguide
LARGEST_GRID = 2.5e11  # places squared times devices, above which correlations are left out
LARGEST_AMPLITUDE = 1e6  # of one antenna, above which single precision is not used
SAMPLE = 64  # one of so many rows decides whether the correlation bound is computed


@dataclass(frozen=True, eq=False)
class LayoutCertificate:
    """Upper bound on the number of selected devices, valid for every beam and every layout."""

    at_most: int
    best_scores: Real  # upper bound on each device's score, shape (K,)
    # Bounds by argument: "single", "amplitudes", "cases" and "correlations"; None if not computed.
    bounds: Mapping[str, int | None]
    multipliers: Real  # y_k of the bound "amplitudes", shape (K,)

    @property
    def unservable(self) -> Mask:
        """Devices that no beam and no layout can select, shape (K,)."""
        return self.best_scores < 1.0


def certify_layouts(scenario: Scenario, *, report: Report | None = None) -> LayoutCertificate:
    """Compute an upper bound on the number of devices that any beam and any layout can select.

    Parameters
    ----------
    scenario
        Receiver, radio, devices and weights.
    report
        Callback for progress messages.

    Returns
    -------
    LayoutCertificate
        The bound, and upper bounds on the score of every device.
    """
    checks.instance("scenario", scenario, Scenario, "Scenario.paper()")
    scenario.require_one_carrier("certify")
    report = report or discard
    if not scenario.uplink.passive:
        active = next(one for one in scenario.channel.factors if not one.passive)
        raise InvalidInput(
            f"{active.label}: responses may exceed those of the paper's channel, for which alone "
            "bounds over all layouts are known"
        )
    with one_blas_thread():
        report("bound over all layouts: amplitudes")
        amplitudes = _Amplitudes(scenario)
        best_scores = amplitudes.single()
        able = np.flatnonzero(best_scores >= 1.0)
        tree = _Tree(amplitudes, able, scenario.devices.x_m)
        first, multipliers = tree.solve(_Case((), tuple(able), 0))
        amplitude_bound = _whole(first)
        cases = tree.bound(report) if able.size <= MOST_IN_CASES else None
        report("bound over all layouts: correlations")
        known = amplitude_bound if cases is None else cases
        # A factor of each device of its own changes the correlations.
        closed_form = scenario.uplink.closed_form
        correlations = _correlation_bound(scenario, able, known, report) if closed_form else None
    bounds = {
        "single": int(able.size),
        "amplitudes": amplitude_bound,
        "cases": cases,
        "correlations": correlations,
    }
    return LayoutCertificate(
        at_most=min(bound for bound in bounds.values() if bound is not None),
        best_scores=best_scores,
        bounds=bounds,
        multipliers=multipliers,
    )


def score_bounds(scenario: Scenario) -> Real:
    """Upper bound on the score of every device, for every beam and every layout.

    Parameters
    ----------
    scenario
        Receiver, radio, devices and weights.

    Returns
    -------
    Real
        The `best_scores` of `certify_layouts`, shape (K,). Devices whose bound is below one cannot be served.
        Infinity for a channel model without a bound.
    """
    if not scenario.uplink.passive:
        return np.full(scenario.devices.count, np.inf)
    with one_blas_thread():
        return _Amplitudes(scenario).single()


def certify_design(
    design: Design, *, report: Report | None = None
) -> tuple[Certificate, LayoutCertificate | None]:
    """Compute upper bounds that a design can be compared with.

    Parameters
    ----------
    design
        The design.
    report
        Callback for progress messages.

    Returns
    -------
    certificate : Certificate
        Bound for every beam on the channels of the design.
    layout_certificate : LayoutCertificate or None
        Bound for every beam and every layout of its scenario. None for a co-located array, and if the
        method or the channel model has channels that may exceed those of eq. (64).
    """
    design.scenario.require_one_carrier("certify")
    report = report or discard
    report("bound for this layout")
    with one_blas_thread():
        certificate = upper_bound(design.effective)
    scenario = design.scenario
    if design.layout is None or not scenario.uplink.passive:
        return certificate, None
    if not np.array_equal(scenario.uplink.channels(design.layout), design.channels):
        return certificate, None
    return certificate, certify_layouts(scenario, report=report)


def _whole(bound: float) -> int:
    """The largest count within a bound."""
    return max(0, floor(bound * (1.0 + SLACK) + SLACK))


def _strengths(scenario: Scenario) -> Real:
    """a_k D_k: sqrt(Gamma) xi gamma_k/(phi_k sqrt(N)), shape (K,)."""
    antennas = scenario.receiver.antennas
    scale = np.sqrt(scenario.budget / antennas) * scenario.radio.path_gain
    if scenario.split_delta is not None:  # the largest share is that of the antenna next to the feed
        scale *= np.sqrt(antennas) * scenario.split_delta
    strengths: Real = scale * scenario.devices.gain / scenario.weights
    return strengths


def _offsets(scenario: Scenario) -> Real:
    """Squared distance of every device to the line of every waveguide, shape (M, K)."""
    receiver, devices = scenario.receiver, scenario.devices
    across = devices.y_m - receiver.waveguide_y[:, None]
    above = devices.z_m - receiver.heights[:, None]
    offsets: Real = across**2 + above**2
    return offsets


def _cells(scenario: Scenario, per_gap: int, limits: tuple[int, int]) -> tuple[Real, Real, np.ndarray]:
    """Edges of C equal cells on every waveguide, shape (M, C + 1), their width, and steps apart."""
    receiver = scenario.receiver
    slack = ROUNDING * receiver.lengths
    span = receiver.lengths + 2.0 * slack
    gap = receiver.min_gap_m - slack
    wanted = per_gap * float(receiver.lengths.max()) / max(receiver.min_gap_m, 1e-300)
    count = ceil(min(max(wanted, limits[0]), limits[1]))
    edges = -slack[:, None] + span[:, None] * np.arange(count + 1) / count
    width = span / count
    apart = np.ceil(gap / width * (1.0 - SLACK)).astype(np.int64) - 1
    return edges, width, np.maximum(apart, 0)


class _Amplitudes:
    """Inequality (A) of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.antennas = scenario.receiver.antennas
        if isinstance(scenario.uplink, SampledUplink):
            self.cells, self.apart = _at_places(scenario, scenario.uplink.sampled)
            return
        edges, _, self.apart = _cells(scenario, CELLS_PER_GAP, CELLS)
        x = scenario.devices.x_m[:, None]
        offsets = _offsets(scenario)
        strengths = _strengths(scenario)[:, None]
        shape = (len(edges), x.size, edges.shape[1] - 1)
        memory.require(8.0 * np.prod(shape, dtype=float), "amplitudes of cells", "devices.count")
        self.cells = np.empty(shape)
        for m, (row, offset) in enumerate(zip(edges, offsets, strict=True)):
            away = np.maximum(np.maximum(row[:-1] - x, x - row[1:]), 0.0)
            self.cells[m] = strengths / np.sqrt(away**2 + offset[:, None])

    def bound(self, multipliers: Real) -> tuple[float, Real]:
        """t(y), rounded up, and the amplitudes sum_m |m_m| s_{k,m} of a beam and cells that attain it."""
        sums, amplitudes = run(
            _largest_sums,
            self.cells,
            multipliers,
            self.antennas,
            self.apart,
            work=float(np.count_nonzero(multipliers) + self.antennas) * self.cells.size / multipliers.size,
        )
        total = float(np.linalg.norm(sums))
        if total == 0.0:
            return 0.0, np.zeros(multipliers.size)
        return total * (1.0 + SLACK), sums @ amplitudes / total

    def single(self) -> Real:
        """Upper bound on the score of every device, shape (K,)."""
        scores, multipliers = np.empty(self.cells.shape[1]), np.zeros(self.cells.shape[1])
        for k in range(scores.size):
            multipliers[k] = 1.0
            scores[k] = self.bound(multipliers)[0] ** 2
            multipliers[k] = 0.0
        return scores


def _at_places(scenario: Scenario, sampled: SampledResponse) -> tuple[Real, np.ndarray]:
    """Amplitudes at places as those of cells, shape (M, K, P), zero beyond the last, and steps apart."""
    receiver = scenario.receiver
    assert scenario.candidates is not None
    rows = scenario.candidates.places
    scale = np.sqrt(scenario.budget / receiver.antennas) / scenario.weights
    cells = np.zeros((len(rows), scale.size, max(row.size for row in rows)))
    apart = np.ones(len(rows), np.int64)
    for m, row in enumerate(rows):
        chosen = np.searchsorted(sampled.places_m[m], row)
        cells[m, :, : row.size] = (np.abs(sampled.response[m, chosen]) * scale).T
        # Steps to the next place at the gap, the fewest anywhere.
        gap = receiver.min_gap_m - 2.0 * ROUNDING * receiver.lengths[m]
        after = np.searchsorted(row, row + gap)
        steps = (after - np.arange(row.size))[after < row.size]
        apart[m] = max(1, steps.min(initial=row.size))
    return cells, apart


@kernel
def _places(weights: Real, antennas: int, apart: int, chosen: np.ndarray) -> float:
    """Largest sum of `weights` over cells whose indices differ by at least `apart`, and these cells."""
    cells = weights.size
    best = np.full((antennas + 1, cells + 1), -np.inf)
    best[0] = 0.0
    taken = np.zeros((antennas + 1, cells + 1), np.bool_)
    for n in range(1, antennas + 1):
        for c in range(1, cells + 1):
            before = c - apart if apart > 0 else c
            value = -np.inf
            if n == 1:
                value = weights[c - 1]
            elif before >= 0:
                value = best[n - 1, before] + weights[c - 1]
            taken[n, c] = value > best[n, c - 1]
            best[n, c] = max(value, best[n, c - 1])
    c = cells
    for n in range(antennas, 0, -1):
        while not taken[n, c]:
            c -= 1
        chosen[n - 1] = c - 1
        c = c - apart if apart > 0 else c
    return float(best[antennas, cells])


@kernel
def _largest_sums(
    cells: Real, multipliers: Real, antennas: int, apart: np.ndarray, stop: Flag
) -> tuple[Real, Real]:
    """W_m(y) on every waveguide, and s_{k,m} of the cells that attain it, shape (M, K)."""
    waveguides, devices, count = cells.shape
    sums, amplitudes = np.empty(waveguides), np.zeros((waveguides, devices))
    weights, chosen = np.empty(count), np.empty(antennas, np.int64)
    for m in range(waveguides):
        if stop[0] != 0:
            break
        weights[:] = 0.0
        for k in range(devices):
            if multipliers[k] != 0.0:
                for c in range(count):
                    weights[c] += multipliers[k] * cells[m, k, c]
        sums[m] = _places(weights, antennas, apart[m], chosen)
        for k in range(devices):
            for n in range(antennas):
                amplitudes[m, k] += cells[m, k, chosen[n]]
    return sums, amplitudes


@dataclass(frozen=True)
class _Case:
    """Selections with all devices of `known`, and any of `free`, in order of x."""

    known: tuple[int, ...]
    free: tuple[int, ...]
    depth: int  # 0: nothing is known; 1: the leftmost; 2: the outermost, and maybe others


class _Tree:
    """Branch and bound over cases."""

    def __init__(self, amplitudes: _Amplitudes, able: np.ndarray, x: Real) -> None:
        self.amplitudes = amplitudes
        self.order = tuple(int(k) for k in able[np.argsort(x[able], kind="stable")])
        self.count = x.size
        self.planes: list[Real] = []  # amplitudes that some beam and cells attain; they hold in every case
        self.together: dict[tuple[int, int], bool] = {}
        self.shares: Real = np.zeros(self.count)

    def bound(self, report: Report) -> int:
        """The largest bound of all cases."""
        root = _Case((), self.order, 0)
        heap = [(-_whole(self.solve(root)[0]), 0, root, self.shares)]
        solved = 1
        while heap and solved < CASES:
            top, _, case, shares = heap[0]
            children = self._split(case, shares)
            if children is None:
                break
            heapq.heappop(heap)
            for child in children:
                if len(child.known) + len(child.free) == 0:
                    continue
                bound = min(_whole(self.solve(child)[0]), -top)
                solved += 1
                if bound >= len(child.known):
                    heapq.heappush(heap, (-bound, solved, child, self.shares))
            report(f"bound over all layouts: {solved} cases, at most {-heap[0][0] if heap else 0}")
        return -heap[0][0] if heap else 0

    def solve(self, case: _Case) -> tuple[float, Real]:
        """The bound of a case and its multipliers; sets `shares`, the amplitudes of the last model."""
        from scipy.optimize import linprog

        devices = np.array(case.known + case.free, dtype=np.int64)
        size, known = devices.size, len(case.known)
        best, best_y = float(size), np.zeros(self.count)
        self.shares = np.ones(self.count)
        if size == 0:
            return best, best_y
        largest = np.where(np.arange(size) < known, LARGEST_MULTIPLIER, 1.0)
        limits = np.column_stack([np.zeros(size + 1), np.append(largest, np.inf)])
        cost = np.append(-np.ones(size), 1.0)
        if not self.planes:
            self.planes.append(self.amplitudes.bound(np.ones(self.count))[1])
        for _ in range(CUTS):
            planes = np.array(self.planes)
            sides = np.column_stack([planes[:, devices], -np.ones(len(planes))])
            found = linprog(cost, A_ub=sides, b_ub=np.zeros(len(planes)), bounds=limits)
            if found.status != 0:
                break
            y = np.zeros(self.count)
            y[devices] = np.clip(found.x[:-1], 0.0, largest)
            total, plane = self.amplitudes.bound(y)
            value = size - float(y.sum()) + total
            if value < best:
                best, best_y = value, y
            self.shares = -found.ineqlin.marginals @ planes
            model = size + found.fun
            if best < known or best - model < 1e-3 or _whole(best) == _whole(model):
                break
            self.planes.append(plane)
        return best, best_y

    def _split(self, case: _Case, shares: Real) -> list[_Case] | None:
        """A partition of a case; None if the argument cannot say more about it."""
        if all(shares[k] >= 1.0 - 1e-6 for k in case.known + case.free):
            return None
        if case.depth < 2:
            return self._outermost(case)
        doubtful = [k for k in case.free if shares[k] < 1.0 - 1e-6]
        if not doubtful:
            return None
        k = max(doubtful, key=lambda k: float(shares[k]))
        rest = tuple(j for j in case.free if j != k)
        inside = tuple(j for j in rest if self._compatible(j, k))
        without = _Case(case.known, rest, 2)
        if not all(self._compatible(j, k) for j in case.known):
            return [without]
        return [_Case((*case.known, k), inside, 2), without]

    def _outermost(self, case: _Case) -> list[_Case]:
        """Cases by which device is the first (depth 0) or last (depth 1) along x."""
        if case.depth == 0:
            return [
                _Case((k,), tuple(j for j in case.free[at + 1 :] if self._compatible(j, k)), 1)
                for at, k in enumerate(case.free)
            ]
        alone = [_Case(case.known, (), 2)]
        return alone + [
            _Case((*case.known, k), tuple(j for j in case.free[:at] if self._compatible(j, k)), 2)
            for at, k in enumerate(case.free)
        ]

    def _compatible(self, first: int, second: int) -> bool:
        """Whether inequality (A) allows both devices to be selected together."""
        key = (min(first, second), max(first, second))
        if key not in self.together:
            self.together[key] = True
            for share in (0.5, 0.35, 0.65):
                y = np.zeros(self.count)
                y[key[0]], y[key[1]] = share, 1.0 - share
                if self.amplitudes.bound(y)[0] < 1.0 - SLACK:
                    self.together[key] = False
                    break
        return self.together[key]


def _correlation_bound(scenario: Scenario, able: np.ndarray, known: int, report: Report) -> int | None:
    """The bound by correlations for all devices that can be selected at all.

    None if it cannot be below `known`, as the sums of a sample of rows show, or if it would take too long.
    """
    if able.size == 0 or known == 0:
        return None
    grid = _Grid(scenario, able)
    size = (float(grid.places) * scenario.receiver.waveguides) ** 2 * able.size
    if size > LARGEST_GRID or grid.largest.max() > LARGEST_AMPLITUDE:
        return None
    if _whole(grid.bound(SAMPLE, discard)) >= known:
        return None
    return _whole(grid.bound(1, report))


class _Grid:
    """Correlations of places on all waveguides."""

    def __init__(self, scenario: Scenario, able: np.ndarray) -> None:
        edges, width, self.apart = _cells(scenario, BLOCKS_PER_GAP, BLOCKS)
        self.antennas = scenario.receiver.antennas
        wavelength = scenario.radio.wavelength_m
        self.steps = ceil(GRID_PER_WAVELENGTH * float(width.max()) / wavelength)
        self.places = (edges.shape[1] - 1) * (self.steps + 1)
        self.edges, self.x, self.able = edges, scenario.devices.x_m[able], able
        self.offsets = _offsets(scenario)[:, able]
        self.strengths = _strengths(scenario)[able]
        self.wavenumber = 2.0 * np.pi / wavelength
        # Of every cell and device: largest amplitude, and largest error of interpolation.
        self.largest = np.empty((len(edges), edges.shape[1] - 1, able.size))
        self.error = np.empty_like(self.largest)
        for m in range(len(edges)):
            self._bound_cells(m)

    def _bound_cells(self, m: int) -> None:
        low, high = self.edges[m, :-1, None], self.edges[m, 1:, None]
        offset = self.offsets[m]
        nearest = np.sqrt(np.maximum(np.maximum(low - self.x, self.x - high), 0.0) ** 2 + offset)
        # c = D' rises along the waveguide, so that |c - omega| is largest at an end of the cell.
        slope_low = (low - self.x) / np.sqrt((low - self.x) ** 2 + offset)
        slope_high = (high - self.x) / np.sqrt((high - self.x) ** 2 + offset)
        amplitude = self.strengths / nearest
        middle = np.average((slope_low + slope_high) / 2.0, axis=1, weights=amplitude**2)[:, None]
        turn = self.wavenumber * np.maximum(np.abs(slope_low - middle), np.abs(slope_high - middle))
        curvature = turn**2 + self.wavenumber * offset / nearest**3 + offset / nearest**4 + 2.0 / nearest**2
        step = (high - low) / self.steps
        self.largest[m] = amplitude
        self.error[m] = step**2 / 8.0 * amplitude * curvature

    def responses(self, m: int) -> np.ndarray:
        """b_k at the grid points of waveguide m, with both ends of every cell; shape (places, devices)."""
        low, high = self.edges[m, :-1, None], self.edges[m, 1:, None]
        points = (low + (high - low) * np.arange(self.steps + 1) / self.steps).reshape(-1, 1)
        distance = np.sqrt((points - self.x) ** 2 + self.offsets[m])
        response = self.strengths / distance * np.exp(-1j * self.wavenumber * distance)
        return np.asarray(response, dtype=np.complex64)

    def bound(self, stride: int, report: Report) -> float:
        """Largest eigenvalue of T; an estimate from every `stride`-th cell if this is not 1."""
        waveguides, cells, devices = self.largest.shape
        sums = np.zeros((waveguides, waveguides))
        responses = [self.responses(m) for m in range(waveguides)]
        rounding = (devices + 8) * 2.0**-23
        rows = np.arange(0, cells, stride)
        nothing = np.empty(self.antennas, np.int64)
        for m in range(waveguides):
            chosen = responses[m].reshape(cells, -1, devices)[rows].reshape(-1, devices)
            for other in range(m, waveguides):
                # Amplitudes in double precision: the slack covers the rounding of these sums.
                extra = self.largest[m, rows] @ (self.error[other] + rounding * self.largest[other]).T
                extra += self.error[m, rows] @ self.largest[other].T
                square = _block_squares(chosen, responses[other], self.steps + 1)
                largest = run(
                    _row_sums,
                    square,
                    extra,
                    self.steps + 1,
                    self.antennas,
                    self.apart[other],
                    work=2.0 * self.antennas * square.size,
                )
                full = np.full(cells, largest.max())
                full[rows] = largest
                sums[m, other] = sums[other, m] = _places(full, self.antennas, self.apart[m], nothing)
            report(f"bound over all layouts: correlations of waveguide {m + 1} of {waveguides}")
        return float(np.linalg.eigvalsh(sums)[-1])


def _block_squares(rows: np.ndarray, columns: np.ndarray, block: int) -> np.ndarray:
    """Largest |R|^2 of every row over every block of columns."""
    result = np.empty((len(rows), len(columns) // block), np.float32)
    transposed = np.ascontiguousarray(columns.conj().T)
    size = 512
    for at in range(0, len(rows), size):
        _block_maxima(rows[at : at + size] @ transposed, block, result[at : at + size])
    return result


@kernel
def _block_maxima(products: np.ndarray, block: int, result: np.ndarray) -> None:
    """Largest |.|^2 over blocks of columns."""
    for i in range(products.shape[0]):
        for c in range(result.shape[1]):
            largest = np.float32(0.0)
            for at in range(c * block, (c + 1) * block):
                value = products[i, at]
                largest = max(largest, value.real * value.real + value.imag * value.imag)
            result[i, c] = largest


@kernel
def _row_sums(squares: np.ndarray, extra: Real, block: int, antennas: int, apart: int, stop: Flag) -> Real:
    """rho of every cell: the largest sum of a row of it over places of the other waveguide."""
    rows, cells = extra.shape
    result = np.zeros(rows)
    weights = np.empty(cells)
    before, after = np.empty(cells + 1), np.empty(cells + 1)
    for r in range(rows):
        if stop[0] != 0:
            break
        for i in range(r * block, (r + 1) * block):
            for c in range(cells):
                weights[c] = math.sqrt(squares[i, c]) + extra[r, c]
            before[:] = 0.0
            for n in range(antennas):
                after[0] = -np.inf
                for c in range(1, cells + 1):
                    from_cell = c - apart if apart > 0 else c
                    value = -np.inf
                    if n == 0:
                        value = weights[c - 1]
                    elif from_cell >= 0:
                        value = before[from_cell] + weights[c - 1]
                    after[c] = max(value, after[c - 1])
                before[:] = after
            result[r] = max(result[r], before[cells])
    return result

"""How many devices the solvers find and how long they take. Run: python benchmarks/solvers.py

Times are medians of repeated calls after a warm-up, one thread. Ratios are of calls made in
turn in this one run. Seeds 0-19; no default was chosen on them (see tuning.py).
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import statistics  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pymanopt  # noqa: E402

from airpass import Scenario, aircomp, design, select  # noqa: E402
from airpass.optim import conjugate_gradient as cg  # noqa: E402
from airpass.optim.types import Complex, Real  # noqa: E402
from airpass.selection.base import dominant_eigenvector  # noqa: E402
from airpass.selection.hrmc import HrmcOptions  # noqa: E402

SEEDS = range(20)


def timed(call: Callable[[], Any], repeats: int = 5) -> float:
    """Median seconds of a call."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def selection_table() -> None:
    """Devices and time of HRMC at the uniform layout."""
    print("HRMC, K=50, M=N=10, uniform layout, mean of 20 seeds")
    print(f"{'SNR dB':>8} {'starts':>7} {'selected':>9} {'ms a solve':>11} {'evaluations':>12}")
    for snr_db in (-5.0, 0.0, 5.0):
        for starts in (1, 16, 64):
            counts, seconds, evaluations = [], [], []
            for seed in SEEDS:
                scenario = Scenario.paper(50, 10, 10, snr_db, seed)
                channels = scenario.channels(scenario.uniform_layout())

                def solve(
                    scenario: Scenario = scenario, channels: Complex = channels, starts: int = starts
                ) -> Any:
                    return select(channels, scenario.weights, scenario.budget, options={"starts": starts})

                picked = solve()
                counts.append(picked.selected_count)
                evaluations.append(picked.work["evaluations"])
                seconds.append(timed(solve))
            print(
                f"{snr_db:8g} {starts:7d} {np.mean(counts):9.2f} {1e3 * np.mean(seconds):11.2f} "
                f"{np.mean(evaluations):12.0f}"
            )


def design_table() -> None:
    """Devices and time of whole AirPASS designs."""
    print("\nAirPASS designs, mean of 20 seeds")
    print("   K   M   N  SNR dB   fixed  airpass  ms a design  rounds")
    for count, waveguides, antennas, snr_db in (
        (50, 10, 10, -10.0),
        (50, 10, 10, -5.0),
        (50, 10, 10, 0.0),
        (50, 10, 10, 5.0),
        (10, 5, 5, 10.0),
    ):
        results = [design(Scenario.paper(count, waveguides, antennas, snr_db, seed)) for seed in SEEDS]
        print(
            f"{count:4d} {waveguides:3d} {antennas:3d} {snr_db:7g} "
            f"{np.mean([result.trace[0].selected_count for result in results]):7.2f} "
            f"{np.mean([result.selected_count for result in results]):8.2f} "
            f"{1e3 * np.mean([result.seconds for result in results]):12.0f} "
            f"{np.mean([len(result.trace) for result in results]):7.0f}"
        )


def pymanopt_stage(columns: Complex, start: Complex) -> tuple[float, float]:
    """Seconds and value of the first surrogate stage by pymanopt on Sphere(2M)."""
    size = start.size
    manifold = pymanopt.manifolds.Sphere(2 * size)
    options = HrmcOptions()
    beta, mu = options.sharpness, options.level
    adjoint = columns.conj().T.copy()

    def scores(point: Real) -> tuple[Complex, Real]:
        projected = adjoint @ (point[:size] + 1j * point[size:])
        return projected, projected.real**2 + projected.imag**2

    @pymanopt.function.numpy(manifold)  # type: ignore[untyped-decorator]
    def cost(point: Real) -> float:
        violation = np.logaddexp(0.0, beta * (1.0 - scores(point)[1])) / beta
        return float(np.sum(-np.expm1(-violation / mu)))

    @pymanopt.function.numpy(manifold)  # type: ignore[untyped-decorator]
    def euclidean_gradient(point: Real) -> Real:
        projected, z = scores(point)
        violation = np.logaddexp(0.0, beta * (1.0 - z)) / beta
        alpha = np.exp(-violation / mu) / mu / (1.0 + np.exp(-beta * (1.0 - z)))
        real = -2.0 * (columns @ (alpha * projected))
        return np.concatenate([real.real, real.imag])

    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=euclidean_gradient)
    solver = pymanopt.optimizers.ConjugateGradient(verbosity=0, min_gradient_norm=1e-4, max_iterations=100)
    initial = np.concatenate([start.real, start.imag])
    began = time.perf_counter()
    result = solver.run(problem, initial_point=initial)
    return time.perf_counter() - began, float(result.cost)


def stage_ratio() -> None:
    """One surrogate stage, ours and pymanopt's, from the same start on the same channels."""
    print("\nFirst surrogate stage from the eigenvector start, ours against pymanopt (in turn, 20 seeds)")
    ratios, ours_ms, theirs_ms, gaps = [], [], [], []
    options = HrmcOptions()
    for seed in SEEDS:
        scenario = Scenario.paper(50, 10, 10, 0.0, seed)
        columns = aircomp.effective_channels(
            scenario.channels(scenario.uniform_layout()), scenario.weights, scenario.budget
        )
        start = dominant_eigenvector(columns)
        re, im = np.ascontiguousarray(columns.real), np.ascontiguousarray(columns.imag)

        def ours(re: Real = re, im: Real = im, start: Complex = start) -> Any:
            return cg.minimise(
                re,
                im,
                cg.SATURATING,
                np.ones(50),
                options.sharpness,
                options.level,
                start,
                options.initial_step,
                options.stage_iterations,
                options.tolerance,
            )

        value = ours()[1]
        mine = timed(ours)
        theirs, their_value = min(pymanopt_stage(columns, start) for _ in range(3))
        ratios.append(theirs / mine)
        ours_ms.append(1e3 * mine)
        theirs_ms.append(1e3 * theirs)
        gaps.append(value - their_value)
    print(
        f"ours {np.median(ours_ms):.3f} ms, pymanopt {np.median(theirs_ms):.1f} ms, "
        f"median ratio {np.median(ratios):.0f} (from {min(ratios):.0f} to {max(ratios):.0f}); "
        f"objective ours minus theirs: median {np.median(gaps):+.4f}, mean {np.mean(gaps):+.4f}"
    )


def growth() -> None:
    """Time against K, per evaluation."""
    print("\nHRMC against K (M=16, random channels, one start)")
    print(f"{'K':>8} {'s a solve':>10} {'evaluations':>12} {'ns per evaluation and device':>30}")
    sizes, per_evaluation = [], []
    for count in (100, 1_000, 10_000, 100_000):
        rng = np.random.default_rng(0)
        channels = rng.standard_normal((16, count)) + 1j * rng.standard_normal((16, count))
        picked = select(channels, np.ones(count), 0.05)
        seconds = timed(
            lambda channels=channels, count=count: select(channels, np.ones(count), 0.05),  # type: ignore[misc]
            3 if count > 10_000 else 5,
        )
        work = picked.work["evaluations"]
        sizes.append(count)
        per_evaluation.append(seconds / work)
        print(f"{count:8d} {seconds:10.4f} {work:12d} {1e9 * seconds / work / count:30.2f}")
    slope = np.polyfit(np.log(sizes[1:]), np.log(per_evaluation[1:]), 1)[0]
    print(f"exponent in K of the time per evaluation, from K=1,000 on: {slope:.2f}")


if __name__ == "__main__":
    selection_table()
    design_table()
    stage_ratio()
    growth()

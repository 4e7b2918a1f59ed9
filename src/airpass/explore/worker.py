"""Long jobs of the page, in a child process: `python -m airpass.explore.worker PARENT`.

A job is a line of JSON on standard input, {"job": name, "trusted": [...], ...}. On standard output there are
lines {"type": "progress", ...} and then one of

    {"type": "result", ...}
    {"type": "error", "message": ...}
    {"type": "cancelled"}

SIGINT ends the present job, and is ignored without one. Standard output of libraries goes to standard error.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TextIO

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.registry import with_threads
from airpass.core.text import one_line
from airpass.core.threads import processors
from airpass.core.workers import follow_parent

SHORTEST_PAUSE_S = 0.04  # between two progress messages that may be left out
MOST_ROUNDS, MOST_LINKS, MOST_DRAWS, MOST_TURNS = 2000, 8, 5000, 32
COMPILING = "compiling (once per kind of channel, up to a minute)"
NICE = 5  # so that answers to the page come first

Send = Callable[[dict[str, Any]], None]
Job = Callable[[Mapping[str, Any], Any, Send], dict[str, Any]]


def threads() -> int:
    """Threads of a job: one processor is left for the page."""
    return max(1, processors() - 1)


def run_design(job: Mapping[str, Any], trusted: Any, send: Send) -> dict[str, Any]:
    """Run a design method; every improvement is sent as it is found."""
    from airpass.designs.api import design
    from airpass.explore import answers
    from airpass.explore.state import read_method, read_state, state_of

    state = read_state(job.get("state"), trusted)
    method = read_method(job.get("method"))
    due = 0.0
    trace: list[dict[str, Any]] = []

    def on_step(step: Any) -> None:
        nonlocal due
        now = time.monotonic()
        if not step.best and now < due:
            return
        due = now + SHORTEST_PAUSE_S
        trace.append({**answers.step(step), "layout_m": None})
        send({"step": answers.step(step)})

    found = design(
        state.scenario,
        with_threads(method, threads()),
        seed=state.seed,
        on_step=on_step,
        report=lambda text: send({"text": text}),
    )
    found = replace(found, method=method)
    new = state_of(found)
    return {"state": new.to_dict(), "answer": answers.answer(found), "trace": trace}


def run_certificate(job: Mapping[str, Any], trusted: Any, send: Send) -> dict[str, Any]:
    """Upper bounds for the present antennas, and for all layouts."""
    from airpass.designs.bounds import certify_design
    from airpass.explore.state import read_state

    found = read_state(job.get("state"), trusted).design()
    found.scenario.require_one_carrier("a certificate")
    bound, everywhere = certify_design(found, report=lambda text: send({"text": text}))
    return {
        "selected_count": found.selected_count,
        "devices": found.scenario.devices.count,
        "beams": bound.at_most,
        "layouts": None if everywhere is None else everywhere.at_most,
        "unservable": [] if everywhere is None else everywhere.unservable.nonzero()[0].tolist(),
    }


def run_life(job: Mapping[str, Any], trusted: Any, send: Send) -> dict[str, Any]:
    """Devices against displacement."""
    from airpass.designs.life import life
    from airpass.explore.answers import number
    from airpass.explore.state import read_state

    found = read_state(job.get("state"), trusted).design()
    draws = _count(job, "draws", 20, MOST_DRAWS)
    result = life(found, draws=draws, report=lambda text: send({"text": text}))
    return {
        "devices": result.devices,
        "wavelength_m": result.wavelength_m,
        "distances_m": result.distances_m.tolist(),
        "means": {name: result.mean(name).tolist() for name in result.counts},
        "coherence_m": {name: number(result.coherence_m(name)) for name in result.counts},
        "draws": draws,
    }


def run_tolerance(job: Mapping[str, Any], trusted: Any, send: Send) -> dict[str, Any]:
    """Devices under errors of antenna positions, at several standard deviations."""
    from airpass.designs.tolerance import RECEIVERS, tolerance
    from airpass.explore.state import read_state

    found = read_state(job.get("state"), trusted).design()
    draws = _count(job, "draws", 100, MOST_DRAWS)
    largest = checks.positive("position_mm", job.get("position_mm", 10.0))
    errors = [0.0, *(largest * share for share in (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0))]
    means: dict[str, list[float]] = {name: [] for name in RECEIVERS}
    for error in errors:
        send({"text": f"position errors of {error:g} mm"})
        result = tolerance(found, position_mm=error, draws=draws if error else 1)
        for name in RECEIVERS:
            means[name].append(result.outcomes[name].mean)
    return {"position_mm": errors, "means": means, "draws": draws, "devices": found.scenario.devices.count}


def run_turns(job: Mapping[str, Any], trusted: Any, send: Send) -> dict[str, Any]:
    """A book of designs that serve the devices by turns."""
    from airpass.designs.turns import AUTO, schedule
    from airpass.explore.state import read_method, read_state

    state = read_state(job.get("state"), trusted)
    given = job.get("turns", AUTO)
    turns: Any = AUTO if given == AUTO else _count(job, "turns", 2, MOST_TURNS)
    method = None if job.get("method") is None else with_threads(read_method(job["method"]), threads())
    move = "beams" if state.array is not None else job.get("move", "antennas")
    book = schedule(
        state.scenario,
        turns,
        move,
        method if state.array is None else state.array,
        seed=state.seed,
        report=lambda text: send({"text": text}),
    )
    return book_json(book)


def book_json(book: Any) -> dict[str, Any]:
    """A book as the page shows it.

    Parameters
    ----------
    book
        An `airpass.Book`.

    Returns
    -------
    dict[str, Any]
        An answer per turn, with the share of each device's weight; and the state with the antennas and the
        beam of the turn, for whole weights.
    """
    from airpass.explore.answers import answer, number
    from airpass.explore.state import state_of

    return {
        "turns": [
            {"answer": answer(one), "shares": shares.tolist(), "state": state_of(one).to_dict()}
            for one, shares in zip(book.designs, book.shares, strict=True)
        ],
        "served": book.served.tolist(),
        "cycle_scores": [number(value) for value in book.cycle_scores],
        "least_turns": book.least_turns.tolist(),
        "seconds": book.seconds,
        "move": book.move,
    }


def run_training(job: Mapping[str, Any], trusted: Any, send: Send) -> dict[str, Any]:
    """Train on mnist-mini over designs, next to ideal FedAvg."""
    from airpass.explore.answers import number
    from airpass.explore.state import read_state
    from airpass.learning import FEDAVG
    from airpass.learning.compare import compare
    from airpass.learning.options import TrainOptions

    links = job.get("links")
    if not isinstance(links, list) or not 1 <= len(links) <= MOST_LINKS:
        raise InvalidInput(f"links: must be 1 to {MOST_LINKS} designs")
    schemes: dict[str, Any] = {"0": FEDAVG}
    labels = ["FedAvg (ideal)"]
    for one in links:
        if not isinstance(one, dict):
            raise InvalidInput("links: must be objects with label and state")
        schemes[str(len(labels))] = read_state(one.get("state"), trusted).design()
        labels.append(one_line(str(one.get("label", "")), 60))
    scenario = schemes["1"].scenario
    if any(one.scenario.devices.count != scenario.devices.count for one in list(schemes.values())[1:]):
        raise InvalidInput("links: designs must have the same number of devices")
    rounds = _count(job, "rounds", 100, MOST_ROUNDS)
    every = max(1, rounds // 50)
    options = TrainOptions(rounds=rounds, evaluate_every=every, probe_images=500)
    seed = checks.whole("seed", job.get("seed", 0), 0)

    def on_round(name: str, done: int, values: Mapping[str, float]) -> None:
        accuracy = number(values["accuracy"])
        if accuracy is not None or done % 5 == 0:
            send({"run": int(name), "round": done, "accuracy": accuracy})

    send({"text": "loading data", "labels": labels, "rounds": rounds})
    runs = compare(
        scenario,
        schemes,
        "mnist-mini",
        options,
        seed,
        workers=threads(),
        on_start=lambda name: send({"text": f"training {labels[int(name)]}"}),
        on_round=on_round,
        progress=False,
    )
    return {
        "labels": labels,
        "runs": [
            {
                "run": int(run.scheme),
                "status": run.status,
                "rounds": [record.round for record in run.history],
                "accuracy": [number(record.test_accuracy) for record in run.history],
                "measured_sdr_db": number(run.history[-1].measured_sdr_db),
                "selected_count": run.history[-1].selected_count,
            }
            for run in runs
        ],
        "interrupted": any(run.interrupted for run in runs),
    }


def run_samples(job: Mapping[str, Any], trusted: Any, send: Send) -> dict[str, Any]:
    """Number of samples of each device when mnist-mini is split among them."""
    from airpass.explore.state import read_state
    from airpass.learning.training import prepare

    state = read_state(job.get("state"), trusted)
    _, data = prepare(state.scenario, "mnist-mini", None, checks.whole("seed", job.get("seed", 0), 0))
    return {"samples": [int(count) for count in data.counts]}


JOBS: dict[str, Job] = {
    "design": run_design,
    "certificate": run_certificate,
    "life": run_life,
    "tolerance": run_tolerance,
    "turns": run_turns,
    "train": run_training,
    "samples": run_samples,
}


def _count(job: Mapping[str, Any], name: str, default: int, most: int) -> int:
    value = checks.whole(name, job.get(name, default), 1)
    if value > most:
        raise InvalidInput(f"{name} = {value}: must be at most {most}")
    return value


class _Interrupts:
    """Whether SIGINT ends something."""

    def __init__(self) -> None:
        self.active = False
        signal.signal(signal.SIGINT, self._handle)
        if hasattr(signal, "pthread_sigmask"):  # blocked by the parent until now
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def _handle(self, *_: object) -> None:
        if self.active:
            self.active = False
            raise KeyboardInterrupt


def outcome(job: Mapping[str, Any], send: Send, interrupts: _Interrupts | None = None) -> dict[str, Any]:
    """Run a job, and turn what comes of it into a message.

    Parameters
    ----------
    job
        The job.
    send
        Callback for progress.
    interrupts
        Switch of the handler of SIGINT.

    Returns
    -------
    dict[str, Any]
        The last message of the job.
    """
    from airpass.explore.state import Trusted
    from airpass.kernels.compiling import on_compilation
    from airpass.kernels.interrupts import was_interrupted

    try:
        if interrupts is not None:
            interrupts.active = True
        with on_compilation(lambda: send({"text": COMPILING})):
            found = JOBS[job["job"]](job, Trusted(tuple(job.get("trusted", ()))), send)
        return {"type": "result", **found}
    except KeyboardInterrupt:
        return {"type": "cancelled"}
    except InvalidInput as error:
        return {"type": "error", "message": one_line(str(error))}
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return {"type": "error", "message": "training needs PyTorch: pip install 'airpass[learn]'"}
    except MemoryError:
        return {"type": "error", "message": "not enough memory for a problem of this size"}
    except SystemError as error:
        if isinstance(was_interrupted(error), KeyboardInterrupt):
            return {"type": "cancelled"}
        raise
    finally:
        if interrupts is not None:
            interrupts.active = False


def serve(lines: TextIO, out: TextIO) -> None:
    """Run the jobs of standard input until it ends.

    Parameters
    ----------
    lines
        Jobs.
    out
        Where messages go.
    """
    interrupts = _Interrupts()

    def write(message: dict[str, Any]) -> None:
        out.write(json.dumps(message, allow_nan=False) + "\n")
        out.flush()

    for line in lines:
        try:
            last = outcome(
                json.loads(line), lambda message: write({"type": "progress", **message}), interrupts
            )
        except KeyboardInterrupt:  # in the last moment of a job
            last = {"type": "cancelled"}
        except Exception as error:  # a job must not end the process
            last = {"type": "error", "message": one_line(f"internal error: {type(error).__name__}: {error}")}
        write(last)


def main() -> None:
    """Serve the parent process."""
    follow_parent(int(sys.argv[1]))
    os.nice(NICE)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, out)


if __name__ == "__main__":
    main()

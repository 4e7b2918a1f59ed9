"""Command lines and sweep files, good and bad, run in this process."""

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import tomli_w

from airpass import cli
from attack.scenarios import spoil, tables
from attack.values import Random, pick, plain_value, word

LONGEST_LINE = 600  # characters of an error message
SMALL = ("--devices", "3", "--waveguides", "2", "--antennas", "2")
FAST = ("--effort", "fast", "--option", "kicks=1", "--option", "threads=1")
# Command lines that are good with the files of `attack.files`.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("design", *SMALL, *FAST, "--snr-db", "5", "--seed", "3", "--json", "-"),
    ("design", *SMALL, "--method", "airpass", "--set", "receiver.height_m=3", "--json", "out.json"),
    ("design", *SMALL, "--selection", "hrmc", "--geometry", "elementwise", "--quiet"),
    ("design", *SMALL, *FAST, "--tolerance-mm", "1", "--draws", "5", "--channel-error", "0.01"),
    ("design", *SMALL, *FAST, "--life", "--draws", "2"),
    ("design", *SMALL, *FAST, "--turns", "2", "--move", "beams", "--json", "-"),
    ("design", *SMALL, *FAST, "--all-devices"),
    ("design", *SMALL, *FAST, "--certify", "--all"),
    ("design", *SMALL, *FAST, "--set", "channel.loss_db_per_m=0.1", "--set", "channel.candidates_m=0.5"),
    ("design", "--scenario", "room.toml", *FAST, "--start", "design.json"),
    ("design", *SMALL, *FAST, "--priorities", "samples", "--time-limit-s", "1"),
    ("select", "--channels", "channels.npy", "--budget", "0.03", "--json", "-"),
    ("select", "--channels", "channels.npz", "--snr-db", "0", "--mse-threshold", "0.03", "--draw", "1"),
    ("select", "--channels", "channels.npz", "--budget", "1", "--method", "hrmc+", "--option", "starts=2"),
    ("select", "--channels", "channels.npy", "--budget", "1", "--certify", "--check-set", "0,1"),
    ("select", "--channels", "channels.npy", "--weights", "weights.npy", "--budget", "1", "--power", "2"),
    ("schedule", *SMALL, "--turns", "2", "--option", "effort=fast", "--option", "kicks=0", "--json", "-"),
    ("track", *SMALL, "--seconds", "0.02", "--layout-every-ms", "10", "--method", "mimo-m", "--json", "-"),
    ("show", "design.json"),
    ("show", "selection.json", "--json", "-"),
    ("show", "history.json"),
    ("methods", "--options"),
    ("presets",),
    ("check-method", "hrmc", "--kind", "selection"),
    ("data", "list"),
    ("sweep", "sweep.toml", "--workers", "1", "--json", "-"),
)
PROGRESS = ("airpass: Designing", "airpass: Selecting", "airpass: Scheduling", "airpass: Tracking")


def run(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            cli.main(list(arguments))
        except SystemExit as stop:
            code = int(stop.code or 0)
        out.flush()
    return code, out.buffer.getvalue().decode(errors="replace"), err.getvalue()


def check(arguments: Sequence[str]) -> str:
    """Run a command, and check how it ends."""
    code, out, err = run(arguments)
    assert "Traceback" not in err, "traceback"
    assert code in (0, 1, 2), f"exit code {code}"
    notes = [line for line in err.splitlines() if not line.startswith(PROGRESS)]
    if code == 2:
        lines = [line for line in notes if line.startswith("airpass: ")]
        assert lines, f"no message: {err[-300:]!r}"
        assert len(lines[-1]) <= LONGEST_LINE, f"a message of {len(lines[-1])} characters"
        assert "internal error" not in err, lines[-1]
        return "refused"
    assert code == 0 or "check-method" in arguments, f"exit code {code}: {err[-300:]}"
    if "--json" in arguments and arguments[-1] == "-" and not {"--help", "-h"} & set(arguments):
        json.loads(out)
    return "done"


def attack_command(rng: Random, folder: Path) -> str:
    """A command line with some words changed."""
    words = list(pick(rng, COMMANDS))
    for _ in range(int(rng.integers(0, 4))):
        place = int(rng.integers(1, len(words) + 1))
        change = int(rng.integers(5))
        if change == 0:
            words.insert(place, word(rng))
        elif change == 1 and place < len(words):
            del words[place]
        elif change == 2:
            words[place:place] = list(pick(rng, COMMANDS))[1:3]
        elif change == 3:
            section, key = pick(rng, (("radio", "power"), ("radio", "snr_db"), ("receiver", "length_m")))
            words[place:place] = ["--set", f"{section}.{key}={word(rng)}"]
        elif place < len(words):
            words[place] = word(rng)
    # Paths that tests must not write to, and sizes that are allowed but take long.
    if any(one.startswith(("/", "~", "../")) or one == "10" + "0" * 8 for one in words):
        return "left out"
    return check([one.replace("\x00", "\\0") for one in words])


def sweep_file(rng: Random) -> dict[str, Any]:
    """A sweep with one small trial."""
    scenario = tables(rng)
    scenario["devices"] = {"count": 3}
    return {
        "name": "attack",
        "schemes": ["mimo-m", {"label": "fixed", "selection": "hrmc", "geometry": "fixed"}],
        "trials": 1,
        "axis": {"field": "radio.snr_db", "values": [0.0]},
        "scenario": scenario,
    }


def attack_sweep(rng: Random, folder: Path) -> str:
    """A sweep whose file has some values changed."""
    study = sweep_file(rng)
    for _ in range(int(rng.integers(0, 3))):
        place = int(rng.integers(5))
        if place == 0:
            study[pick(rng, ("name", "schemes", "trials", "seed", "axis", "figure", "train", "x"))] = (
                plain_value(rng)
            )
        elif place == 1:
            study["axis"] = {
                "field": pick(rng, ("radio.snr_db", "receiver.x", word(rng))),
                "values": plain_value(rng),
            }
        elif place == 2:
            study["figure"] = {pick(rng, ("metric", "x_label", "width", "title", "labels")): plain_value(rng)}
        elif place == 3:
            study["schemes"] = [
                {"label": word(rng), "method": "mimo-m", "options": {"axis": pick(rng, ("x", 3))}}
            ]
        else:
            spoil(rng, study["scenario"])
    if study.get("trials") not in (1, 2) and isinstance(study.get("trials"), int) and study["trials"] > 2:
        return "left out"  # allowed, and takes long
    path = folder / "attack.toml"
    try:
        path.write_text(tomli_w.dumps(study), encoding="utf-8")
    except (TypeError, ValueError):
        return "left out"  # TOML has no such value
    out = folder / f"sweep-{int(rng.integers(10**9))}"
    return check(["sweep", str(path), "--workers", "1", "--out", str(out), "--json", "-"])

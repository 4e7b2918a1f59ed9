"""Bad values of every option of every command: one line on standard error, and no traceback."""

import json
import os
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import airpass
from airpass import InvalidInput, Scenario
from airpass.cli import cli
from airpass.cli.root import OutputFile, OutputFolder
from airpass.core import checks
from airpass.core.numbers import reals
from airpass.core.text import LONGEST_LINE, LONGEST_VALUE, one_line, printable, shown
from command_line import PROGRESS, Outcome, assert_refused

DIGITS, BRACKETS = "9" * 5000, "[" * 5000
NUMBERS = (
    "",
    "x",
    "nan",
    "inf",
    "-1e309",
    "1e400",
    DIGITS,
    "5e-324",
    "-5",
    "1j",
    "\N{FULLWIDTH DIGIT ONE}x",
    "\x1b[31m",
    "[/x]",
)
TEXTS = (
    "",
    "x" * 3000,
    "[/x]",
    "\x1b[31m",
    "$\\frac{$",
    "<script>",
    "a\nb",
    "\u202ex",
    "../..",
    "a:b:c",
    DIGITS,
)
ASSIGNMENTS = (
    "",
    "=",
    "x",
    ".=1",
    "a..b=1",
    "radio.power=5e-324",
    f"radio.snr_db={DIGITS}",
    f"radio.snr_db={DIGITS[:400]}",
    f"devices.x_m={BRACKETS}",
    f"receiver.waveguides={DIGITS}",
    "receiver=3",
    "radio.power={a=1}",
    "weights.normalisation=[1]",
    f"devices.{'x' * 3000}=1",
    "devices.count=1979-05-27",
)


def leaves(group: click.Group, *before: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        more = (*before, name)
        found += leaves(command, *more) if isinstance(command, click.Group) else [more]
    return found


COMMANDS = leaves(cli)


def command(names: tuple[str, ...]) -> click.Command:
    found: click.Command = cli
    for name in names:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    return found


def bad_values(option: click.Option) -> tuple[str, ...]:
    if option.is_flag:
        return ()
    if isinstance(option.type, OutputFile | OutputFolder):
        return ("loop", "G.npy/x.png", "x" * 300 + ".png")
    if option.name in ("overrides", "changes"):
        return ASSIGNMENTS
    return NUMBERS if option.type in (click.INT, click.FLOAT) else TEXTS


def cases() -> list[Any]:
    return [
        pytest.param(names, max(option.opts, key=len), value, id=f"{'-'.join(names)}{option.opts[0]}-{place}")
        for names in COMMANDS
        for option in command(names).params
        if isinstance(option, click.Option)
        for place, value in enumerate(bad_values(option))
    ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with channels, and a link that leads to itself."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    np.save("G.npy", rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3)))
    os.symlink("loop", "loop")
    return tmp_path


def assert_one_line(outcome: Outcome) -> None:
    lines = [line for line in outcome.err.splitlines() if not line.startswith(PROGRESS)]
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.err
    assert len(lines) == 1
    assert lines[0].startswith("airpass: ")
    assert len(lines[0]) < 400
    assert lines[0].isprintable()


# What a command needs besides, such that it stops before any work if the value happens to be allowed.
STOP = {
    ("design",): ("--move", "beams"),
    ("select",): ("--channels", "G.npy", "--check-set", "99", "--budget", "1"),
    ("train",): ("--target-share", "2", "--move", "beams"),
    ("track",): ("--paths", "none.csv"),
    ("schedule",): ("--turns", "x"),
    ("reproduce",): ("fig77",),
    ("sweep",): ("none.toml",),
    ("plot",): ("none.json",),
    ("show",): ("none.json",),
    ("check-method",): ("none",),
    ("demo",): ("--rounds", "0"),
    ("explore",): ("--no-browser", "none.toml"),
    ("data", "fetch"): ("none",),
    ("data", "verify"): ("none",),
    ("methods",): ("--none",),
    ("presets",): ("--none",),
    ("data", "list"): ("--none",),
}


def test_every_command_is_tried() -> None:
    assert set(STOP) == set(COMMANDS)


@pytest.mark.parametrize(("names", "flag", "value"), cases())
def test_bad_values_end_in_one_line(
    run: Any, place: Path, names: tuple[str, ...], flag: str, value: str
) -> None:
    outcome = run(*names, flag, value, *STOP[names])
    assert outcome.code == 2
    assert outcome.out == ""
    assert_one_line(outcome)


SCENARIO_NUMBERS = [
    "receiver.length_m",
    "receiver.spacing_m",
    "receiver.height_m",
    "receiver.min_gap_m",
    "radio.snr_db",
    "radio.mse_threshold",
    "radio.wavelength_m",
    "radio.refractive_index",
    "radio.path_gain",
    "radio.power",
    "devices.z_m",
    "channel.loss_db_per_m",
    "channel.blockage_per_m",
    "channel.rician_k_db",
    "channel.candidates_m",
    "devices.priority",
]


@pytest.mark.parametrize("value", ["5e-324", "1e-320", "1e-150", "1e99", "1e100", "1e300", "-1e99", "0.0"])
@pytest.mark.parametrize("field", SCENARIO_NUMBERS)
def test_extreme_numbers_give_a_design_or_one_line(run: Any, field: str, value: str) -> None:
    """Warnings are errors in these tests, so that rounding to zero or infinity would be noticed."""
    sizes = ("--devices", 3, "--waveguides", 2, "--antennas", 2)
    outcome = run("design", "--method", "mimo-m", *sizes, "--set", f"{field}={value}", "--json", "-")
    if outcome.code == 0:
        found = json.loads(outcome.out)
        assert np.isfinite(found["scores"]).all()
        assert found["selected_count"] == sum(score >= 1.0 for score in found["scores"])
    else:
        assert outcome.code == 2
        assert outcome.out == ""
        assert_one_line(outcome)


class TestPaths:
    def test_results_do_not_replace_their_input(self, run: Any, place: Path) -> None:
        before = Path("G.npy").read_bytes()
        os.link("G.npy", "hard.npy")
        os.symlink("G.npy", "soft.npy")
        for name in ("G.npy", "./G.npy", f"{place}/G.npy", "hard.npy", "soft.npy"):
            outcome = run("select", "--channels", "G.npy", "--budget", 1, "--json", name)
            assert_refused(outcome, "--json", "is also read, by --channels")
        assert Path("G.npy").read_bytes() == before

    def test_files_that_texts_name_are_inputs(self, run: Any, place: Path) -> None:
        Path("own.py").write_text("def own(effective, rng):\n    return effective[:, 0]\n")
        outcome = run(
            "select", "--channels", "G.npy", "--budget", 1, "--method", "own.py:own", "--json", "own.py"
        )
        assert_refused(outcome, "--json own.py", "--method")

    def test_two_results_have_two_names(self, run: Any, place: Path) -> None:
        os.symlink("a.png", "b.png")
        for name in ("a.png", "./a.png", "b.png"):
            outcome = run("select", "--channels", "G.npy", "--budget", 1, "--json", "a.png", "--figure", name)
            assert_refused(outcome, "--figure", "is also written by --json")

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("loop", "symbolic links"),
            ("loop/a.json", "symbolic links"),
            (".", "is a directory"),
            ("G.npy/a.json", "is not a directory"),
            ("x" * 300, "too long"),
        ],
    )
    def test_paths_that_cannot_be_written(self, run: Any, place: Path, path: str, words: str) -> None:
        outcome = run("select", "--channels", "none.npy", "--budget", 1, "--json", path)
        assert_refused(outcome, words)

    def test_python_refuses_a_loop_of_links(self, place: Path) -> None:
        with pytest.raises(InvalidInput, match="symbolic links"):
            Scenario.paper().save("loop")
        assert os.path.islink("loop")

    def test_devices_and_pipes_are_written(self, run: Any, place: Path) -> None:
        assert run("presets", "--json", "/dev/null").code == 0
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
        assert_refused(run("presets", "--json", "/dev/full"), "/dev/full", "No space left")

    def test_names_that_are_not_utf_8(self, run: Any, place: Path) -> None:
        name = os.fsdecode(b"\xff[/x].json")
        outcome = run("select", "--channels", "G.npy", "--budget", 1, "--json", name)
        assert outcome.code == 0
        assert run("show", name).code == 0
        assert_refused(run("show", os.fsdecode(b"\xfe.json")), "\\udcfe.json")


class TestJson:
    @pytest.mark.parametrize("name", [("methods",), ("presets",), ("data", "list")])
    def test_lists(self, run: Any, name: tuple[str, ...]) -> None:
        assert json.loads(run(*name, "--json", "-").out)

    def test_what_methods_print_is_not_in_it(self, run: Any, place: Path) -> None:
        Path("loud.py").write_text(
            "import os\n\ndef loud(effective, rng):\n    print('from Python')\n    os.write(1, b'from C')\n"
            "    return effective[:, 0]\n"
        )
        outcome = run(
            "select", "--channels", "G.npy", "--budget", 1, "--method", "loud.py:loud", "--json", "-"
        )
        assert json.loads(outcome.out)["method"]["name"] == "loud"
        assert "from Python" in outcome.err
        assert "from C" in outcome.err

    def test_other_commands(self, run: Any, place: Path) -> None:
        sizes = ("--devices", 3, "--waveguides", 2, "--antennas", 2)
        for arguments in (
            ("design", "--method", "mimo-m", *sizes),
            ("design", "--method", "mimo-m", "--certify", *sizes),
            ("select", "--channels", "G.npy", "--budget", 1, "--certify", "--check-set", "0,1"),
            ("select", "--channels", "G.npy", "--budget", 1, "--method", "sdr-dc"),
            ("schedule", "--method", "airpass", "--turns", 1, *sizes),
            ("track", "--method", "mimo-m", "--seconds", 0.02, *sizes),
            ("check-method", "mp"),
        ):
            outcome = run(*arguments, "--json", "-")
            assert outcome.code == 0, (arguments, outcome.err)
            assert json.loads(outcome.out)


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `airpass presets` fail as if by a bug, that is not in a file of the user."""
    names: dict[str, Any] = {"error": error}
    exec(compile("def broken(*_, **__):\n    raise error", os.__file__, "exec"), names)  # noqa: S102
    monkeypatch.setattr("airpass.scenario.Scenario.preset", names["broken"])


class TestErrors:
    def test_a_bug_is_one_line(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        fail_with(ZeroDivisionError("x" * 1000), monkeypatch)
        outcome = run("presets")
        assert outcome.code == 1
        assert outcome.err.startswith("airpass: internal error: ZeroDivisionError: xxx")
        assert outcome.err.endswith("(run with --debug for the traceback)\n")
        assert outcome.err.count("\n") == 1
        shown_all = run("presets", "--debug")
        assert shown_all.code == 1
        assert "Traceback" in shown_all.err

    @pytest.mark.parametrize(
        ("error", "code", "words"),
        [
            (KeyboardInterrupt(), 130, "interrupted"),
            (EOFError("the file ends"), 1, "internal error: EOFError: the file ends"),
            (RecursionError(), 1, "internal error: RecursionError (run"),
            (MemoryError(), 2, "not enough memory"),
            (BrokenPipeError(), 0, ""),
        ],
    )
    def test_codes(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str
    ) -> None:
        fail_with(error, monkeypatch)
        monkeypatch.setattr("airpass.cli._end_of_pipe", lambda: sys.exit(0))
        outcome = run("presets")
        assert outcome.code == code
        assert words in outcome.err

    @pytest.mark.parametrize("name", COMMANDS, ids="-".join)
    def test_every_command_has_debug(self, run: Any, name: tuple[str, ...]) -> None:
        assert "--debug" in run(*name, "--help").out

    @pytest.mark.parametrize(
        ("shell", "code"),
        [
            ("{} presets >&-", 0),
            ("{} presets 2>&-", 0),
            ("{} presets >&- 2>&- <&-", 0),
            ("{} presets --json - >&-", 2),
            ("{} presets --json a.json >&- && test -s a.json", 0),
            ("{} presets >/dev/full", 2),
            ("{} presets --none 2>/dev/full", 2),
            ("set -o pipefail; {} methods --options | head -c 1", 0),
        ],
    )
    def test_closed_and_full_streams(self, place: Path, shell: str, code: int) -> None:
        program = f"{sys.executable} -m airpass"
        done = subprocess.run(
            ["bash", "-c", shell.format(program)], capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") <= 1


class TestFiles:
    @pytest.mark.parametrize(
        "content",
        [
            f"radio.power = {DIGITS}".encode(),
            f"radio.power = {DIGITS[:400]}".encode(),
            f"devices.x_m = {BRACKETS}".encode(),
            b"\xff\xfe",
            b"\0",
            f"radio.{'x' * 5000} = 1".encode(),
            f"preset = '{'x' * 5000}'".encode(),
        ],
        ids=shown,
    )
    def test_scenarios(self, run: Any, place: Path, content: bytes) -> None:
        Path("s.toml").write_bytes(content)
        outcome = run("design", "--scenario", "s.toml")
        assert outcome.code == 2
        assert_one_line(outcome)

    @pytest.mark.parametrize(
        "content", [DIGITS, BRACKETS, '{"kind": []}', "[]", "null", '{"kind": "design"}'], ids=shown
    )
    def test_results(self, run: Any, place: Path, content: str) -> None:
        Path("r.json").write_text(content)
        for name in ("show", "plot"):
            outcome = run(name, "r.json")
            assert outcome.code == 2
            assert_one_line(outcome)

    @pytest.mark.parametrize("key", ["seconds", "budget", "weights", "seed", "beam", "certificate", "method"])
    @pytest.mark.parametrize("value", [int(DIGITS[:400]), "x", [[]], None, {}, -1], ids=shown)
    def test_changed_results(self, run: Any, place: Path, key: str, value: Any) -> None:
        run("select", "--channels", "G.npy", "--budget", 1, "--certify", "--json", "r.json")
        document = json.loads(Path("r.json").read_text())
        document.pop("sha256", None)
        document[key] = value
        Path("r.json").write_text(json.dumps(document))
        outcome = run("show", "r.json")
        assert "Traceback" not in outcome.err
        assert "internal error" not in outcome.err
        assert outcome.code in (0, 2)
        if outcome.code == 2:
            assert_one_line(outcome)


class TestPython:
    @pytest.mark.parametrize(
        "wrong",
        [None, 3, "x", [], {}, object(), 1j, 10**5000, np.zeros(2)],
        ids=lambda value: type(value).__name__,
    )
    @pytest.mark.parametrize(
        "name",
        [
            "design",
            "design_for_all",
            "schedule",
            "certify_layouts",
            "life",
            "tolerance",
            "fresh_draws",
            "prepare",
        ],
    )
    def test_wrong_kinds(self, name: str, wrong: Any) -> None:
        with pytest.raises(InvalidInput, match="must be a"):
            getattr(airpass, name)(wrong)

    @pytest.mark.parametrize("wrong", [3, {}, object(), 1j, 10**5000], ids=lambda value: type(value).__name__)
    def test_training_needs_a_link(self, wrong: Any) -> None:
        with pytest.raises(InvalidInput, match=r"link = .*: must be"):
            airpass.train(wrong)

    def test_long_paths(self) -> None:
        for function in (airpass.load, airpass.load_responses, Scenario.load):
            with pytest.raises(InvalidInput, match=r"cannot be read|no such file"):
                function("x" * 5000 + ".npz")

    @pytest.mark.parametrize("wrong", [None, 3, "x", [], {}, 1j, np.zeros(2)])
    def test_paths_are_texts(self, wrong: Any) -> None:
        for function in (airpass.load, Scenario.load):
            with pytest.raises((InvalidInput, TypeError)):
                function(wrong)

    @pytest.mark.parametrize("part", ["receiver", "radio", "devices", "weighting", "channel"])
    def test_parts_of_a_scenario(self, part: str) -> None:
        wrong: Any
        for wrong in (*([] if part == "devices" else [None]), 3, "x", Scenario):  # no devices: they are drawn
            with pytest.raises(InvalidInput, match=rf"{part} = .*: must be a"):
                Scenario(**{part: wrong})

    @pytest.mark.parametrize(
        "wrong", [None, "1", 0, -1, 5e-324, np.nan, np.inf, 10**400, [1.0], True, 1j], ids=shown
    )
    def test_the_budget_of_a_certificate(self, wrong: Any) -> None:
        with pytest.raises(InvalidInput, match="budget = "):
            airpass.certify(np.ones((2, 2)), budget=wrong)

    @pytest.mark.parametrize(
        "wrong",
        [
            [1.0 + 1.0j, 2.0],
            np.array([1.0 + 1.0j, 2.0]),
            ["1", "2"],
            [None, 1.0],
            [True, False],
            [10**400, 1],
            [10**5000, 1],
            [np.nan, 1.0],
            [np.inf, 1.0],
            [[1.0], [1.0, 2.0]],
            [],
            np.zeros((1,) * 30),
            np.array("a"),
        ],
    )
    def test_arrays(self, wrong: Any) -> None:
        columns: dict[str, Any] = {"x_m": [1.0, 2.0], "y_m": 1.0, "gain": 1.0, "samples": 1}
        for name in ("x_m", "y_m", "gain"):
            with pytest.raises(InvalidInput, match=rf"devices\.{name}"):
                airpass.Devices(**columns | {name: wrong})
        with pytest.raises(InvalidInput, match="layout"):
            Scenario.paper(waveguides=1, antennas=2).channels(wrong)
        with pytest.raises(InvalidInput):
            airpass.select(np.ones((2, 2)), wrong, 1.0)

    def test_numbers_of_other_types(self) -> None:
        np.testing.assert_array_equal(reals("x", [Fraction(1, 2), 2]), [0.5, 2.0])
        assert checks.number("x", Fraction(1, 2)) == 0.5
        assert checks.positive("x", np.float32(0.5)) == 0.5
        with pytest.raises(InvalidInput, match="within"):
            checks.number("x", Fraction(10**400))


class TestText:
    def test_printable(self) -> None:
        assert printable("\x1b[31mred\udcff\u202e\n") == "\\x1b[31mred\\udcff\\u202e\\n"
        assert printable("中文 é λ\n", keep="\n") == "中文 é λ\n"

    def test_long_texts_keep_their_ends(self) -> None:
        text = one_line(f"field = {'9' * 5000}: must be a number")
        assert len(text) == LONGEST_LINE
        assert text.startswith("field = 999")
        assert text.endswith("999: must be a number")

    def test_shown(self) -> None:
        class Rude:
            def __repr__(self) -> str:
                raise RuntimeError

        assert shown(10**5000) == "a number of about 5001 digits"
        assert shown(Rude()) == "an object of type Rude"
        assert shown(np.float64(0.5)) == "0.5"
        assert len(shown(np.arange(1000))) <= LONGEST_VALUE
        assert "\n" not in shown(np.eye(3))

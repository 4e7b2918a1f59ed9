"""The code of README and of the pages in docs runs as it is printed, with fewer rounds and draws where it
would take long. Tutorials are run when the site is built.
"""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import airpass
from airpass.cli import cli
from airpass.learning import training
from airpass.learning.options import TrainOptions

ROOT = Path(__file__).parent.parent
MADE = {"gallery.md", "methods.md"}  # when the site is built
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name not in MADE),
]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
# What is not run: other packages, servers that run until they are stopped, and clusters. Figures of the paper
# have tests of their own. Flags of such commands are checked.
OTHER_PACKAGES = ("dask_jobqueue", "dask_kubernetes", "airpass.importers", "flwr", "pfl")
ENDLESS = ("airpass explore", "dask scheduler", "dask worker")
# Flags that make a command quick; the last one given counts.
QUICK = {
    "train": ["--rounds", "2", "--dataset", "mnist-mini", "--workers", "1"],
    "track": ["--seconds", "0.1"],
    "sweep": ["--workers", "1"],
}


def blocks(path: Path, language: str) -> list[str]:
    """The code blocks of a page in a language, without the prompt of MyST."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


def commands(path: Path) -> Iterator[tuple[list[str], str]]:
    """The commands of a page as words, without comments, and the error messages printed below them."""
    for block in blocks(path, "console"):
        lines = block.replace("\\\n", " ").splitlines()
        for line, below in zip(lines, [*lines[1:], ""], strict=True):
            if line.startswith("$ "):
                yield shlex.split(line[2:], comments=True), below if below.startswith("airpass: ") else ""


def python_of(name: str) -> str:
    """The Python code of a page, without that for other packages."""
    found = blocks(ROOT / name, "python")
    return "\n".join(code for code in found if not any(other in code for other in OTHER_PACKAGES))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what pages take as given: the examples, and files of the reader's own."""
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__", "runs")
    )
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.linspace(0.5, 2.0, 50))
    samples, labels = (
        np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32),
        np.arange(200) % 2,
    )
    np.savez("signs.npz", x_train=samples, y_train=labels, x_test=samples, y_test=labels)
    Path("net.py").write_text(
        "from torch import nn\n\n\nclass Net(nn.Sequential):\n"
        "    def __init__(self):\n        super().__init__(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))\n"
    )
    airpass.Scenario.paper(devices=5).save("own_room.toml")
    Path("paths.csv").write_text(
        "device,time_s,x_m,y_m\n" + "".join(f"{k},{t},{k + t},{k}\n" for k in range(20) for t in (0, 1))
    )
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if python_of(name)])
def test_python_blocks_run(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    defaults = TrainOptions.__init__.__defaults__
    assert defaults is not None
    assert defaults[0] == TrainOptions().rounds
    monkeypatch.setattr(TrainOptions.__init__, "__defaults__", (2, *defaults[1:]))
    monkeypatch.setattr(training, "processors", lambda: 1)  # no worker processes
    code = re.sub(r"\brounds=\d+", "rounds=2", python_of(name))
    if "design.json" in code and "save" not in code:
        airpass.design(airpass.Scenario.paper(devices=5)).save("design.json")
    exec(compile(code, name, "exec"), {"__name__": name})  # noqa: S102


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if any(commands(ROOT / name))])
def test_commands_run(name: str, folder: Path, run: Any) -> None:
    """All commands in their order, as later ones read what earlier ones write."""
    for number, block in enumerate(blocks(ROOT / name, "toml")):
        for file in (f"block-{number}.toml", *re.findall(r"^# (\S+\.toml)$", block, re.MULTILINE)):
            (folder / file).write_text(block)
    if "tutorials" in name:
        make_files_of_tutorials()
    for words, refusal in commands(ROOT / name):
        line = " ".join(words)
        elsewhere = "tcp://" in line or "tls://" in line or "..." in words or " is writing to it" in refusal
        if line.startswith(ENDLESS) or elsewhere or words[:2] == ["airpass", "reproduce"]:
            if words[0] == "airpass":
                check_words(words[1:])
        elif words[0] == "airpass":
            done = run(*words[1:], *quick_flags(words[1:]))
            assert done.code == (2 if refusal else 0), (line, done.err)
            assert done.err.startswith(refusal)
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
        elif words[:2] == ["pip", "install"]:
            check_extras(line)
        else:
            assert words[0] in {"python", "openssl", "export", "flwr"}, line
            if words[0] == "python":
                assert (ROOT / words[1]).is_file(), line


def quick_flags(words: list[str]) -> list[str]:
    """Flags that make a command quick."""
    quick = list(QUICK.get(words[0], []))
    if "--dataset" in words and words[words.index("--dataset") + 1] != "mnist":
        quick = [word for word in quick if word not in {"--dataset", "mnist-mini"}]
    if "--for-draws" in words:
        quick += ["--for-draws", "4"]
    if "--time-limit-s" in words:
        quick += ["--time-limit-s", "1"]
    return quick


def check_words(words: list[str]) -> None:
    """Check flags and values without running the command."""
    command = cli.commands[words[0]]
    command.make_context(words[0], [word for word in words[1:] if word != "..."], parent=click.Context(cli))


def check_extras(line: str) -> None:
    """Extras that are installed exist."""
    text = (ROOT / "pyproject.toml").read_text()
    for names in re.findall(r"(?:airpass|\.)\[([\w,]+)\]", line):
        for extra in names.split(","):
            assert f"\n{extra} = [" in text, extra


def make_files_of_tutorials() -> None:
    """Files that the cells of tutorials write."""
    Path("snr.toml").write_text('name = "snr"\nschemes = ["airpass"]\n')


@pytest.mark.skipif(not (ROOT / "src").is_dir(), reason="without the repository there are no sources")
def test_every_file_that_pages_link_exists() -> None:
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for way in re.findall(r"\]\(([^)\s]+)\)", text):
            path = way.partition("#")[0]
            if path and ":" not in path and Path(path).name not in MADE:
                assert (page.parent / path).exists(), (page.name, way)

"""The example scripts run as they are, from an empty folder, and leave the files that they name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
MOST_LINES = 30
# Script, words of its output, files that it writes.
CASES: dict[str, tuple[list[str], list[str]]] = {
    "design": (["airpass-plus: 20 of 20 devices", "with errors of 2 mm"], ["room.png", "design.json"]),
    "own_channels": (["(8, 10, 50)", "TrainingRun(hrmc+"], ["own_channels.png"]),
    "own_room": (["of 15 devices"], ["own_room.png", "own_room.toml"]),
    "own_data": (["TrainingRun(airpass-plus on table", "test loss 0.0"], ["own_data.png"]),
    "sweep": (["mimo-mn-plus"], ["runs/height/height.pdf", "runs/height/report.html"]),
    "own_method": (["Selection(nearest", "Selection(hrmc+"], ["runs/mine/mine.png"]),
    "reproduce": (["C8"], ["runs/paper/fig9/report.html", "runs/paper/fig9/fig9.pdf"]),
    "dask_cluster": (["rows in runs/snr"], ["runs/snr/rows.parquet"]),
    "reopen": (["10 of 10 devices", "largest_power"], ["design.json", "training.json", "curves.pdf"]),
}


def test_every_script_is_listed_and_short() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"make_channels", "pfl_over_the_air"}
    assert scripts == set(CASES)
    for name in scripts:
        assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= MOST_LINES, name


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_runs(name: str, tmp_path: Path) -> None:
    words, files = CASES[name]
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for word in words:
        assert word in done.stdout, done.stdout
    for file in files:
        assert (tmp_path / file).stat().st_size > 1000, file

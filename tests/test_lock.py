"""The lock file has the pinned versions, with hashes, of all that the package requires."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _pins(name: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE)
    return {package.lower().replace("_", "-"): version for package, version in found}


def test_the_lock_file_agrees_with_the_constraints() -> None:
    locked, pinned = _pins("requirements.lock"), _pins("constraints.txt")
    assert {name: version for name, version in locked.items() if name in pinned} == {
        name: pinned[name] for name in locked if name in pinned
    }


def test_every_requirement_is_locked_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    names = {
        re.split(r"[<>=\[]", one)[0].lower()
        for one in [*project["dependencies"], *extras["dask"], *extras["explore"], *extras["mat"]]
    }
    text = (ROOT / "requirements.lock").read_text()
    assert names <= _pins("requirements.lock").keys()
    for block in re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in block

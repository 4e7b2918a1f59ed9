"""The cache of compiled kernels: damaged files are replaced, and there is always a place for it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import airpass
from airpass.kernels import cache

KERNEL = """
from airpass.kernels.jit import kernel

@kernel
def twice(x):
    return x + x
"""
CALL = """
from sample import twice
print(twice(4.0), twice(4), sum(twice.stats.cache_misses.values()), twice._cache.cache_path)
"""
UNKNOWN_USER = 54321


class Sample:
    """A module with one kernel, called in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sample.py").write_text(KERNEL)
        self.paths = os.pathsep.join([str(folder), str(Path(airpass.__file__).parent.parent)])

    def run(self, *prefix: str, **variables: str) -> tuple[int, Path, str]:
        """How many overloads were compiled, where they are cached, and standard error."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": self.paths,
            "TMPDIR": str(self.folder / "tmp"),
        }
        done = subprocess.run(
            [*prefix, sys.executable, "-B", "-c", CALL],
            env=environment | variables,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )
        assert done.returncode == 0, done.stderr
        value, whole, compiled, path = done.stdout.split(maxsplit=3)
        assert (value, whole) == ("8.0", "8")
        return int(compiled), Path(path.strip()), done.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    sample = Sample(tmp_path_factory.mktemp("filled"))
    directory = str(sample.folder / "cache")
    assert sample.run(NUMBA_CACHE_DIR=directory)[0] == 2
    assert sample.run(NUMBA_CACHE_DIR=directory)[0] == 0
    return sample


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:60],
        _flipped,
        lambda content: b"cos\nsystem\n(S'exit 3'\ntR.",  # a pickle that would run a command
    ],
    ids=["emptied", "cut", "flipped", "pickle"],
)
def test_damaged_files_are_replaced(
    filled: Sample, tmp_path: Path, kind: str, damage: Callable[[bytes], bytes]
) -> None:
    shutil.copytree(filled.folder / "cache", tmp_path / "cache")
    files = list((tmp_path / "cache").rglob(f"*.{kind}"))
    assert files
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    compiled, _, messages = filled.run(NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert compiled > 0
    assert messages == ""
    assert filled.run(NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0] == 0


def test_data_of_another_signature_are_not_used(filled: Sample, tmp_path: Path) -> None:
    """Two processes that start with an empty cache may give their data files the same name."""
    shutil.copytree(filled.folder / "cache", tmp_path / "cache")
    first, second = sorted((tmp_path / "cache").rglob("*.nbc"))
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    assert filled.run(NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0] == 2
    assert filled.run(NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0] == 0


def test_a_temporary_directory_if_no_other_can_be_written(tmp_path: Path) -> None:
    """The folder of the package is blocked by a file, the home directory does not exist."""
    sample = Sample(tmp_path)
    (tmp_path / "__pycache__").write_text("")
    (tmp_path / "tmp").mkdir()
    home = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
    compiled, path, messages = sample.run(**home)
    assert compiled == 2
    assert path.is_relative_to(tmp_path / "tmp")
    assert messages.count("\n") == 1
    assert "NUMBA_CACHE_DIR" in messages
    assert sample.run(**home)[0] == 0
    given = sample.run(**home, **{cache.TEMPORARY: str(path.parent)})
    assert given == (0, path, ""), "a child process says nothing"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_a_directory_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    (tmp_path / "__pycache__").write_text("")
    planted = tmp_path / "tmp" / f"airpass-kernels-{os.getuid()}"
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    _, path, _ = sample.run(HOME="/proc/none")
    assert not path.is_relative_to(planted)
    assert path.is_relative_to(tmp_path / "tmp")


@pytest.mark.skipif(
    not (hasattr(os, "getuid") and os.getuid() == 0 and shutil.which("setpriv")),
    reason="needs to run as another user",
)
def test_another_user_without_a_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A read-only package, and a user whom the system does not know: the home directory is "~"."""
    folder = Path(tempfile.gettempdir()) / tmp_path_factory.mktemp("readonly").name
    folder.mkdir(mode=0o755)
    try:
        sample = Sample(folder)
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o777)
        user = ("setpriv", f"--reuid={UNKNOWN_USER}", f"--regid={UNKNOWN_USER}", "--clear-groups")
        compiled, path, messages = sample.run(*user)
        assert compiled == 2
        assert path.is_relative_to(folder / "tmp")
        assert messages.count("\n") == 1
        assert not (folder / "~").exists()
    finally:
        shutil.rmtree(folder)


def test_nothing_is_stored_without_any_directory(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    (tmp_path / "__pycache__").write_text("")
    program = "import tempfile; tempfile.gettempdir = lambda: '/proc/none'; tempfile.tempdir = '/proc/none'\n"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program + "from sample import twice; print(twice(4.0))"],
        env={"PYTHONPATH": sample.paths, "HOME": "/proc/none"},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.stdout == "8.0\n"
    assert "cannot be stored" in done.stderr
    assert done.stderr.count("\n") == 1

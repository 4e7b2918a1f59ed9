"""What is read back: checksums, damaged files, killed runs, full disks, and locks of folders."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from airpass import InvalidInput, Scenario, design, load
from airpass.core.checksums import TABLE_VERSION, check_document, decode_table, encode_table, with_checksum
from airpass.core.files import remove_leftovers, write_atomically
from airpass.core.locks import HOLDER, LOCK, folder_lock
from airpass.study import api, runner, store, sweep
from airpass.study import run as study_run
from airpass.study.run import output_folders, run_sweep
from airpass.study.runner import run_trials
from airpass.study.store import Store, decode, set_aside
from airpass.study.stored import open_study
from airpass.study.trial import Row, Trial
from command_line import assert_refused

TABLES = {
    "name": "small",
    "schemes": ["mimo-m", "mimo-mn"],
    "trials": 2,
    "axis": {"field": "radio.snr_db", "values": [0.0, 10.0]},
    "scenario": {"receiver": {"waveguides": 2, "antennas": 2}, "devices": {"count": 3}},
}
OLD = Path(__file__).parent / "data" / "table1-0.1.0"  # rows of an earlier version
STUDY = 'name = "small"\nschemes = ["mimo-m"]\n[scenario.devices]\ncount = 3\n'
POSITIONS = 250


class Here:
    """Trials give made-up rows, in this process."""

    about = "this process"

    def __call__(self, batch: Sequence[Trial]) -> runner.Results:
        for one in batch:
            seconds = one.row("seconds", time.perf_counter())
            yield one, [one.row("selected_count", float(one.seed)), one.row("mse", np.nan), seconds]

    def close(self) -> None:
        """Do nothing."""


def study() -> sweep.Sweep:
    return sweep.from_dict(TABLES)


def ran(out: Path, notice: Callable[[str], None] = lambda _: None) -> runner.Outcome:
    with output_folders(["small"], "", lambda _: out):
        return run_sweep(study(), out, Here(), "test", lambda _: None, notice)[0]


def lines(rows: Sequence[Row]) -> list[str]:
    """Rows without times, as text: NaN is not NaN."""
    return sorted(str(row) for row in rows if row.metric != "seconds")


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write pictures that take no time to draw."""

    def write_chart(_: Any, stem: Path) -> bytes:
        for kind in ("pdf", "png"):
            write_atomically(stem.with_name(f"{stem.name}.{kind}"), b"picture")
        return b"picture"

    monkeypatch.setattr(study_run, "write_chart", write_chart)


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A finished study."""
    out = tmp_path / "done"
    ran(out)
    return out


class TestFinished:
    def test_times_alone_do_not_count(self, done: Path) -> None:
        rows = (done / "rows.parquet").read_bytes()
        for path in (done / "trials").iterdir():
            path.unlink()
        (done / "rows.parquet").unlink()
        assert not any(Store(done).has(one) for one in study().trials)
        outcome = ran(done)
        assert (outcome.run, outcome.reused) == (8, 0)
        assert (done / "rows.parquet").read_bytes() == rows

    def test_rows_without_times_count(self, done: Path) -> None:
        (done / "timings.parquet").unlink()
        assert ran(done).reused == 8
        assert len(decode(done / "timings.parquet")) == 8  # rebuilt from the trials

    def test_a_trial_that_is_lost_meanwhile_is_no_success(self, done: Path, tmp_path: Path) -> None:
        class Lossy(Here):
            def __call__(self, batch: Sequence[Trial]) -> runner.Results:
                yield from super().__call__(batch)
                next((tmp_path / "out" / "trials").iterdir()).write_bytes(b"")

        with (
            pytest.raises(InvalidInput, match=r"1 trials were lost.*run the same command again"),
            output_folders(["small"], "", lambda _: tmp_path / "out"),
        ):
            run_sweep(study(), tmp_path / "out", Lossy(), "test", lambda _: None)
        assert ran(tmp_path / "out").run == 1
        same = [(folder / "rows.parquet").read_bytes() for folder in (done, tmp_path / "out")]
        assert same[0] == same[1]


def flipped(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


class TestFlippedBits:
    """A changed file is refused, or gives the same rows."""

    def positions(self, size: int) -> list[tuple[int, int]]:
        rng = np.random.default_rng(20)
        ends = [*range(12), *range(size - 12, size)]
        places = [*ends, *rng.integers(0, size, POSITIONS).tolist()]
        return [(int(at), int(rng.integers(8))) for at in places]

    @pytest.mark.parametrize("name", ["rows.parquet", "trials"])
    def test_rows(self, name: str, done: Path, tmp_path: Path) -> None:
        path = next((done / name).iterdir()) if name == "trials" else done / name
        content, expected = path.read_bytes(), lines(decode(path))
        target, refused = tmp_path / "x.parquet", 0
        for at, bit in self.positions(len(content)):
            target.write_bytes(flipped(content, at, bit))
            try:
                assert lines(decode(target)) == expected, at
            except InvalidInput:
                refused += 1
        assert refused == len(self.positions(len(content)))  # the digest covers every byte

    def test_without_the_digest_pages_are_still_checked(self, done: Path, tmp_path: Path) -> None:
        table = parquet.read_table(done / "rows.parquet").replace_schema_metadata(None)
        parquet.write_table(table, tmp_path / "x.parquet", write_page_checksum=True, compression="none")
        content = (tmp_path / "x.parquet").read_bytes()
        at = content.index(b"mimo-mn")
        (tmp_path / "x.parquet").write_bytes(flipped(content, at, 0))
        with pytest.raises(InvalidInput, match="not a Parquet file"):
            decode(tmp_path / "x.parquet")

    def test_documents(self, tmp_path: Path) -> None:
        found = design(Scenario.paper(devices=3, waveguides=2, antennas=2), "mimo-m")
        path = tmp_path / "d.json"
        found.save(path)
        content = path.read_bytes()
        expected = {key: value for key, value in json.loads(content).items() if key != "sha256"}
        for at, bit in self.positions(len(content)):
            path.write_bytes(flipped(content, at, bit))
            try:
                document = load_document(path)
            except InvalidInput:
                continue
            assert {key: document[key] for key in expected} == expected, at

    def test_provenance(self, done: Path) -> None:
        path = done / "provenance.json"
        content = path.read_bytes()
        path.write_bytes(content.replace(b'"trials": 8', b'"trials": 9'))
        with pytest.raises(InvalidInput, match=r"provenance\.json: does not fit its checksum.*delete"):
            open_study(done)
        with pytest.raises(InvalidInput, match="does not fit its checksum"):
            ran(done)


def load_document(path: Path) -> dict[str, Any]:
    from airpass.documents import read

    return read(path)[0]


class TestDocuments:
    def test_edited_files_are_opened_without_their_checksum(self, run: Any, tmp_path: Path) -> None:
        design(Scenario.paper(devices=3, waveguides=2, antennas=2), "mimo-m").save(tmp_path / "d.json")
        document = json.loads((tmp_path / "d.json").read_text())
        document["status"] = "edited"
        (tmp_path / "d.json").write_text(json.dumps(document))
        assert_refused(run("show", tmp_path / "d.json"), "d.json", "checksum", "delete its key sha256")
        del document["sha256"]
        (tmp_path / "d.json").write_text(json.dumps(document))
        assert load(tmp_path / "d.json").status == "edited"

    def test_layout_and_order_of_keys_do_not_matter(self, tmp_path: Path) -> None:
        design(Scenario.paper(devices=3, waveguides=2, antennas=2), "mimo-m").save(tmp_path / "d.json")
        document = json.loads((tmp_path / "d.json").read_text())
        (tmp_path / "d.json").write_text(json.dumps(dict(reversed(document.items())), indent=7))
        assert load(tmp_path / "d.json").status == document["status"]

    def test_keys_that_are_numbers(self) -> None:
        document = with_checksum({"nested": {10: "a", 2: "b", "c": {3: 0.1}}})
        check_document(json.loads(json.dumps(document)))
        assert with_checksum(document) == document

    @pytest.mark.parametrize("content", ["[]", "null", "3", '"x"', "{", "", "[" * 100_000, "9" * 5000])
    def test_provenance_of_another_kind(self, content: str, run: Any, tmp_path: Path, done: Path) -> None:
        (tmp_path / "study.toml").write_text(STUDY)
        (done / "provenance.json").write_text(content)
        for command in (["show", done], ["sweep", tmp_path / "study.toml", "--out", done]):
            assert_refused(run(*command), "provenance.json: damaged", "delete it")

    @pytest.mark.parametrize(
        "change",
        [{"seconds": "x"}, {"seconds": True}, {"failed": []}, {"study": 3}, {"trials": None}, {"cores": {}}],
    )
    def test_provenance_with_wrong_types(self, change: dict[str, Any], run: Any, done: Path) -> None:
        document = json.loads((done / "provenance.json").read_text()) | change
        del document["sha256"]
        (done / "provenance.json").write_text(json.dumps(document))
        (name,) = change
        assert_refused(run("show", done), f"provenance.json: damaged: {name} =")
        with pytest.raises(InvalidInput, match=f"damaged: {name} ="):
            ran(done)
        del document[name]
        (done / "provenance.json").write_text(json.dumps(document))
        assert_refused(run("show", done), f"{name} is missing")

    def test_newer_formats(self, run: Any, done: Path) -> None:
        (done / "provenance.json").write_text('{"format_version": 9}')
        assert_refused(run("show", done), "format version 9", "install a newer")


class TestTables:
    def rows(self) -> list[dict[str, Any]]:
        return [asdict(one.row("mse", 0.5)) for one in study().trials[:2]]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"value": ["a", "b"]}, "column value holds string, not double"),
            ({"value": [1, 2]}, "column value holds int64"),
            ({"trial": [0.5, 1.5]}, "column trial holds double"),
            ({"round": ["0", "1"]}, "column round holds string"),
            ({"scheme": [1, 2]}, "column scheme holds int64"),
            ({"key": [None, "b"]}, "column key holds null"),
            ({"value": [None, 0.5]}, "column value holds null"),
            ({"x": ["a", "b"]}, "column x holds string"),
            ({"metric": None}, "has 0 columns metric"),
            ({"key": [[1], [2]]}, "column key holds list"),
        ],
    )
    def test_other_tables_are_refused(
        self, change: dict[str, Any], words: str, run: Any, tmp_path: Path
    ) -> None:
        columns = {name: [row[name] for row in self.rows()] for name in store.SCHEMA.names} | change
        table = pa.table({name: values for name, values in columns.items() if values is not None})
        for content in (encode_table(table), plain(table)):
            (tmp_path / "rows.parquet").write_bytes(content)
            for command in ("show", "plot"):
                assert_refused(run(command, tmp_path), "rows.parquet: not a file of rows", words)

    def test_files_of_other_tools(self, tmp_path: Path) -> None:
        """Without metadata, with more columns, in another order, with large strings."""
        table = pa.Table.from_pylist(self.rows(), store.SCHEMA)
        wide = table.append_column("note", pa.array(["a", "b"])).select([*table.column_names[::-1], "note"])
        kinds = [pa.large_string() if field.type == pa.string() else field.type for field in wide.schema]
        (tmp_path / "x.parquet").write_bytes(
            plain(wide.cast(pa.schema(list(zip(wide.column_names, kinds, strict=True)))))
        )
        assert [asdict(row) for row in decode(tmp_path / "x.parquet")] == self.rows()

    def test_empty_files(self, run: Any, tmp_path: Path) -> None:
        (tmp_path / "rows.parquet").write_bytes(store.encode([]))
        assert_refused(run("show", tmp_path), "no rows")
        (tmp_path / "rows.parquet").write_bytes(b"")
        assert_refused(run("show", tmp_path), "not a Parquet file")

    def test_files_of_the_first_version(self) -> None:
        path = OLD / "rows.parquet"
        assert b"airpass-sha256" not in path.read_bytes()
        assert decode(path)

    def test_a_digest_cannot_be_removed_unseen(self, done: Path) -> None:
        content = (done / "rows.parquet").read_bytes().replace(b"airpass-sha256:", b"airpass-sha255:")
        with pytest.raises(InvalidInput, match="no checksum"):
            decode_table(content)

    def test_newer_formats(self, done: Path) -> None:
        table = pa.table({"a": [1]}).replace_schema_metadata({"format_version": str(TABLE_VERSION + 1)})
        with pytest.raises(InvalidInput, match="install a newer one"):
            decode_table(plain(table))
        (done / "rows.parquet").write_bytes(plain(table))
        with pytest.raises(InvalidInput, match="install a newer one"):
            ran(done)  # and it is not set aside
        assert (done / "rows.parquet").exists()

    def test_a_trial_under_another_name(self, done: Path) -> None:
        first, second = study().trials[:2]
        kept = Store(done)
        kept.path(first).write_bytes(kept.path(second).read_bytes())
        (done / "rows.parquet").unlink()
        with pytest.raises(InvalidInput, match="rows of another trial"):
            Store(done).read([first])


def plain(table: Any) -> bytes:
    """Parquet without checksums."""
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


class TestMending:
    @pytest.mark.parametrize("name", ["rows.parquet", "timings.parquet"])
    def test_merged_files_are_rebuilt_from_the_trials(self, name: str, done: Path) -> None:
        content, notices = (done / name).read_bytes(), list[str]()
        damaged = flipped(content, len(content) // 2, 3)
        for number in range(2):
            (done / name).write_bytes(damaged)
            outcome = ran(done, notices.append)
            assert (outcome.run, outcome.reused) == (0, 8)
            assert (done / name).read_bytes() == content
            assert (done / f"{name}.damaged{'' if number == 0 else '-2'}").read_bytes() == damaged
        assert len(notices) == 2
        assert f"{name}: does not fit its checksum; kept as {name}.damaged" in notices[0]

    def test_damaged_trials_are_computed_again(self, done: Path) -> None:
        rows, notices = (done / "rows.parquet").read_bytes(), list[str]()
        (done / "rows.parquet").unlink()
        for one in study().trials[:2]:
            path = Store(done).path(one)
            path.write_bytes(path.read_bytes()[:-9])
        outcome = ran(done, notices.append)
        assert (outcome.run, outcome.reused, len(notices)) == (2, 6, 2)
        assert (done / "rows.parquet").read_bytes() == rows

    def test_reading_moves_nothing(self, run: Any, done: Path) -> None:
        (done / "rows.parquet").write_bytes(b"x")
        before = sorted(done.rglob("*"))
        assert_refused(run("show", done), "rows.parquet: not a Parquet file", "run the study again")
        assert sorted(done.rglob("*")) == before


class Cut(BaseException):
    """Stands in for a process that is killed."""


class TestKilled:
    def test_at_any_file(self, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Killed before the n-th file gets its name, with its temporary file left behind."""
        rows = (done / "rows.parquet").read_bytes()
        real, number = os.replace, 0

        while True:
            out = tmp_path / f"cut-{number}"
            count = 0

            def cut(source: str, target: Any) -> None:
                nonlocal count
                if count == number:  # noqa: B023
                    raise Cut
                count += 1
                real(source, target)

            with monkeypatch.context() as patched:
                patched.setattr(os, "replace", cut)
                patched.setattr(Path, "unlink", lambda *_, **__: None)
                try:
                    ran(out)
                except Cut:
                    pass
                else:
                    break
            for path in out.rglob(".*.part"):  # of a process that has ended
                path.rename(path.with_name(path.name.replace(f".{os.getpid()}-", f".{dead()}-")))
            ran(out)
            assert (out / "rows.parquet").read_bytes() == rows, number
            assert len(decode(out / "timings.parquet")) == 8
            assert not list(out.rglob(".*.part"))
            number += 1
        assert number >= 14  # lock, 8 trials, times, rows, sweep, provenance, pictures, report

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    def test_between_times_and_rows(self, kind: signal.Signals, done: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        program = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in the background of a shell
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_storage
from pathlib import Path
real = os.replace
def cut(source, target):
    if Path(target).name == "rows.parquet":
        os.kill(os.getpid(), {int(kind)})
    real(source, target)
os.replace = cut
test_storage.ran(Path({str(out)!r}))
"""
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert ended.returncode
        assert (out / "timings.parquet").exists()
        assert ran(out).reused == 8
        assert (out / "rows.parquet").read_bytes() == (done / "rows.parquet").read_bytes()
        assert not list(out.rglob(".*.part"))

    def test_leftovers(self, tmp_path: Path) -> None:
        gone = tmp_path / f".rows.parquet.{dead()}-abcdefgh.part"
        alive = f".rows.parquet.{os.getppid()}-abcdefgh.part"
        kept = [tmp_path / name for name in (alive, ".config.disabled", ".x.part", "a.part")]
        for path in (gone, *kept):
            path.touch()
        remove_leftovers(tmp_path)
        assert not gone.exists()
        assert all(path.exists() for path in kept)

    def test_long_names(self, tmp_path: Path) -> None:
        path = tmp_path / ("é" * 120 + ".json")
        write_atomically(path, b"x")
        assert path.read_bytes() == b"x"


def dead() -> int:
    """The id of a process that has ended."""
    program = subprocess.Popen([sys.executable, "-c", ""])
    program.wait()
    return program.pid


class TestDisk:
    @pytest.mark.parametrize("call", ["fsync", "replace"])
    @pytest.mark.parametrize("after", [1, 3, 9, 10])
    def test_a_full_disk(
        self, call: str, after: int, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, count = getattr(os, call), 0

        def full(*arguments: Any) -> None:
            nonlocal count
            count += 1
            if count > after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(*arguments)

        out = tmp_path / "out"
        with monkeypatch.context() as patched:
            patched.setattr(os, call, full)
            with pytest.raises(InvalidInput, match=r"No space left on device\): free some space"):
                ran(out)
        assert not list(out.rglob(".*.part"))
        for path in out.rglob("*.parquet"):
            assert decode(path)
        ran(out)
        assert (out / "rows.parquet").read_bytes() == (done / "rows.parquet").read_bytes()

    def test_a_full_file_system(self, run: Any, tmp_path: Path) -> None:
        small = tmp_path / "small"
        small.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=20k", "tmpfs", str(small)]
        try:
            mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        except OSError:
            mounted = False
        if not mounted:
            pytest.skip("this user may not mount a small file system")
        try:
            (tmp_path / "study.toml").write_text(STUDY)
            outcome = run("sweep", tmp_path / "study.toml", "--out", small / "out", "--workers", 1)
            assert outcome.code == 2
            assert outcome.err.splitlines()[-1].endswith("free some space, then run the same command again")
            assert not list(small.rglob(".*.part"))
        finally:
            subprocess.run(["umount", str(small)], check=True)

    @pytest.mark.parametrize("command", [["sweep", "study.toml"], ["train"], ["demo"], ["reproduce", "fig9"]])
    def test_a_folder_that_cannot_be_written(
        self, command: list[str], run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("study.toml").write_text(STUDY)
        Path("file").touch()
        assert_refused(
            run(*command, "--out", "file/out"), "file/out: cannot be written (", "not a directory)"
        )

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write to any folder")
    def test_a_read_only_folder(self, run: Any, tmp_path: Path) -> None:
        (tmp_path / "study.toml").write_text(STUDY)
        (tmp_path / "out").mkdir(mode=0o500)
        outcome = run("sweep", tmp_path / "study.toml", "--out", tmp_path / "out")
        assert_refused(outcome, "out: cannot be written (Permission denied)")

    def test_a_loop_of_links(self, run: Any, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to(tmp_path / "b")
        (tmp_path / "b").symlink_to(tmp_path / "a")
        with pytest.raises(InvalidInput, match="cannot be written"):
            write_atomically(tmp_path / "a", b"x")
        with pytest.raises(InvalidInput, match="is not the name of a file"):
            write_atomically(tmp_path / "zero\0byte", b"x")


HOLD = """
import sys, time
from pathlib import Path
from airpass.core.locks import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


class TestLocks:
    @pytest.mark.parametrize(
        "command",
        [["sweep", "study.toml"], ["train", "--rounds", "1"], ["demo"], ["reproduce", "fig9"]],
    )
    def test_a_second_command_is_refused(
        self, command: list[str], run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("study.toml").write_text(STUDY)
        with folder_lock(Path("out")):
            outcome = run(*command, "--out", "out")
            assert_refused(outcome, f"out: process {os.getpid()} is writing to it", "another --out")
        assert not Path("out").exists()  # nothing was written

    def test_the_lock_of_a_killed_process_is_free(self, tmp_path: Path) -> None:
        program = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
        assert program.stdout is not None
        assert program.stdout.readline() == b"locked\n"
        with pytest.raises(InvalidInput, match=f"process {program.pid} is writing to it"):
            ran(tmp_path)
        program.kill()
        program.wait()
        program.stdout.close()
        assert json.loads((tmp_path / HOLDER).read_text())["process"] == program.pid  # left behind
        assert ran(tmp_path).run == 8
        assert not (tmp_path / HOLDER).exists()

    @pytest.mark.parametrize(
        ("holder", "words"),
        [
            ('{"process": 7, "host": "elsewhere"}', "process 7 on elsewhere"),
            ("{", "another process"),
            ("[]", "another process"),
            ('{"process": []}', "another process"),
        ],
    )
    def test_holders(self, holder: str, words: str, tmp_path: Path) -> None:
        with folder_lock(tmp_path):
            (tmp_path / HOLDER).write_text(holder)
            with pytest.raises(InvalidInput, match=words), folder_lock(tmp_path):
                pass

    def test_reading_needs_no_lock(self, run: Any, done: Path) -> None:
        with folder_lock(done):
            assert run("show", done).code == 0
            assert run("plot", done).code == 0

    def test_a_file_system_without_locks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import filelock

        def none(*_: Any, **__: Any) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(filelock.FileLock, "acquire", none)
        notices: list[str] = []
        with folder_lock(tmp_path / "out", notices.append):
            (tmp_path / "out" / "x").touch()
        assert "has no locks" in notices[0]

    def test_an_unused_folder_is_removed(self, tmp_path: Path) -> None:
        with folder_lock(tmp_path / "a" / "b"):
            assert (tmp_path / "a" / "b" / LOCK).exists()
        assert not (tmp_path / "a").exists()
        (tmp_path / "a").mkdir()
        with folder_lock(tmp_path / "a"):
            pass
        assert (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "table",
    [
        {"dataset": [1]},
        {"dataset": 3},
        {"dataset": "mnist", "data_dir": 3},
        {"rounds": "x"},
        {"rounds": 1.5},
        {"partition": 3},
        {"partition": {"kind": []}},
        {"model": []},
        {"loss": {"a": 1}},
        {"link": []},
        {"server": {"kind": 3}},
        {"optimiser": []},
        {"learning_rate": True},
        {"batch": {}},
    ],
)
def test_training_tables_with_wrong_types(table: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=next(reversed(table))):
        api.sweep(TABLES | {"train": table}, tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_rows_of_neighbours_that_are_damaged_are_not_used(tmp_path: Path) -> None:
    one = study().trials[0]
    kept = Store(tmp_path, store.skip)
    kept.write(one, [one.row("mse", 1.0)])
    kept.path(one).write_bytes(b"x")
    assert not kept.has(one)
    assert kept.path(one).exists()
    outcome = run_trials([replace(one)], Store(tmp_path, set_aside(lambda _: None)), Here())
    assert outcome.run == 1

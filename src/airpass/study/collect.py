"""Find the figures of a package: each is the `FIGURE` of a module."""

import importlib
import pkgutil
from typing import Any


def collected(package: str) -> dict[str, Any]:
    """The figures of a package.

    Parameters
    ----------
    package
        Name of the package.

    Returns
    -------
    dict[str, Any]
        Figures by name, sorted.
    """
    path = importlib.import_module(package).__path__
    modules = [importlib.import_module(f"{package}.{info.name}") for info in pkgutil.iter_modules(path)]
    found = [module.FIGURE for module in modules if hasattr(module, "FIGURE")]
    return {figure.name: figure for figure in sorted(found, key=lambda figure: figure.name)}

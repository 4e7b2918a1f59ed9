"""Over-the-air federated learning with pinching-antenna receivers.

The public names. They are imported when first used, so that `import airpass` and
`airpass --help` stay instant.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airpass.aircomp import Link
    from airpass.core.errors import InvalidInput
    from airpass.designs.api import Design, design
    from airpass.designs.tolerance import Tolerance, tolerance
    from airpass.learning.training import TrainingRun, TrainOptions, train
    from airpass.scenario import DeviceDraw, Devices, Radio, Receiver, Scenario, Weighting
    from airpass.selection.api import Selection, select
    from airpass.selection.certificate import Certificate, certify

__all__ = [
    "Certificate",
    "Design",
    "DeviceDraw",
    "Devices",
    "InvalidInput",
    "Link",
    "Radio",
    "Receiver",
    "Scenario",
    "Selection",
    "Tolerance",
    "TrainOptions",
    "TrainingRun",
    "Weighting",
    "certify",
    "design",
    "select",
    "tolerance",
    "train",
]

__version__ = version("airpass")

_HOME = {
    "Certificate": "selection.certificate",
    "Design": "designs.api",
    "DeviceDraw": "scenario",
    "Devices": "scenario",
    "InvalidInput": "core.errors",
    "Link": "aircomp",
    "Radio": "scenario",
    "Receiver": "scenario",
    "Scenario": "scenario",
    "Selection": "selection.api",
    "Tolerance": "designs.tolerance",
    "TrainOptions": "learning.training",
    "TrainingRun": "learning.training",
    "Weighting": "scenario",
    "certify": "selection.certificate",
    "design": "designs.api",
    "select": "selection.api",
    "tolerance": "designs.tolerance",
    "train": "learning.training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'airpass' has no attribute {name!r}")
    value = getattr(import_module(f"airpass.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

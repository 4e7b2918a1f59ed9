"""Over-the-air federated learning with pinching-antenna receivers.

The public names. They are imported when first used, so that `import airpass` and
`airpass --help` stay instant.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airpass.certificates import Certificate, certify
    from airpass.designing import Design, design
    from airpass.devices import DeviceDraw, Devices
    from airpass.errors import InvalidInput
    from airpass.learning.training import TrainingRun, TrainOptions, train
    from airpass.robustness import Tolerance, tolerance
    from airpass.scenario import Radio, Receiver, Scenario, Weighting
    from airpass.selecting import Selection, select

__all__ = [
    "Certificate",
    "Design",
    "DeviceDraw",
    "Devices",
    "InvalidInput",
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
    "Certificate": "certificates",
    "Design": "designing",
    "DeviceDraw": "devices",
    "Devices": "devices",
    "InvalidInput": "errors",
    "Radio": "scenario",
    "Receiver": "scenario",
    "Scenario": "scenario",
    "Selection": "selecting",
    "Tolerance": "robustness",
    "TrainOptions": "learning.training",
    "TrainingRun": "learning.training",
    "Weighting": "scenario",
    "certify": "certificates",
    "design": "designing",
    "select": "selecting",
    "tolerance": "robustness",
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

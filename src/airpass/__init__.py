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
    from airpass.learning.compare import compare
    from airpass.learning.data.arrays import ArrayData, TorchData
    from airpass.learning.data.partition import PartitionOptions
    from airpass.learning.optimisers import ServerOptions
    from airpass.learning.options import TrainOptions
    from airpass.learning.training import TrainingRun, prepare, train
    from airpass.scenario import DeviceDraw, Devices, Radio, Receiver, Scenario, Weighting
    from airpass.selection.api import Selection, select
    from airpass.selection.certificate import Certificate, certify

__all__ = [
    "ArrayData",
    "Certificate",
    "Design",
    "DeviceDraw",
    "Devices",
    "InvalidInput",
    "Link",
    "PartitionOptions",
    "Radio",
    "Receiver",
    "Scenario",
    "Selection",
    "ServerOptions",
    "Tolerance",
    "TorchData",
    "TrainOptions",
    "TrainingRun",
    "Weighting",
    "certify",
    "compare",
    "design",
    "prepare",
    "select",
    "tolerance",
    "train",
]

__version__ = version("airpass")

_NAMES = {
    "aircomp": ("Link",),
    "core.errors": ("InvalidInput",),
    "designs.api": ("Design", "design"),
    "designs.tolerance": ("Tolerance", "tolerance"),
    "learning.compare": ("compare",),
    "learning.data.arrays": ("ArrayData", "TorchData"),
    "learning.data.partition": ("PartitionOptions",),
    "learning.optimisers": ("ServerOptions",),
    "learning.options": ("TrainOptions",),
    "learning.training": ("TrainingRun", "prepare", "train"),
    "scenario": ("DeviceDraw", "Devices", "Radio", "Receiver", "Scenario", "Weighting"),
    "selection.api": ("Selection", "select"),
    "selection.certificate": ("Certificate", "certify"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'airpass' has no attribute {name!r}")
    value = getattr(import_module(f"airpass.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

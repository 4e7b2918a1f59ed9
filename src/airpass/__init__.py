"""Over-the-air federated learning with pinching-antenna receivers.

The public names. They are imported when first used, so that `import airpass` and
`airpass --help` stay instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from airpass.core.version import __version__

if TYPE_CHECKING:
    from airpass.aircomp import Link
    from airpass.channel.response_files import load_responses
    from airpass.channel.sampled import SampledResponse
    from airpass.core.errors import InvalidInput
    from airpass.designs.api import Design, WidebandDesign, design
    from airpass.designs.book import Book
    from airpass.designs.bounds import LayoutCertificate, certify_layouts
    from airpass.designs.fresh import FreshDraws, fresh_draws
    from airpass.designs.life import Life, life
    from airpass.designs.moving import Moving
    from airpass.designs.queues import Queues
    from airpass.designs.together import design_for_all
    from airpass.designs.tolerance import Tolerance, tolerance
    from airpass.designs.track import Track, track
    from airpass.designs.turns import schedule
    from airpass.learning.compare import compare, compare_channels
    from airpass.learning.data.arrays import ArrayData, TorchData
    from airpass.learning.data.partition import PartitionOptions
    from airpass.learning.history import Runs, TrainingRun
    from airpass.learning.optimisers import ServerOptions
    from airpass.learning.options import TrainOptions
    from airpass.learning.training import prepare, train
    from airpass.scenario import (
        Channel,
        DeviceDraw,
        Devices,
        LinkBudget,
        Radio,
        Receiver,
        Scenario,
        Weighting,
    )
    from airpass.scenario.motion import Paths, RandomWaypoint, StraightLines, read_paths
    from airpass.selection.api import Draws, Selection, select, select_draws
    from airpass.selection.certificate import Certificate, certify
    from airpass.study.api import reproduce, sweep
    from airpass.study.load import load
    from airpass.study.stored import StoredStudy
    from airpass.wideband import WidebandLink

__all__ = [
    "ArrayData",
    "Book",
    "Certificate",
    "Channel",
    "Design",
    "DeviceDraw",
    "Devices",
    "Draws",
    "FreshDraws",
    "InvalidInput",
    "LayoutCertificate",
    "Life",
    "Link",
    "LinkBudget",
    "Moving",
    "PartitionOptions",
    "Paths",
    "Queues",
    "Radio",
    "RandomWaypoint",
    "Receiver",
    "Runs",
    "SampledResponse",
    "Scenario",
    "Selection",
    "ServerOptions",
    "StoredStudy",
    "StraightLines",
    "Tolerance",
    "TorchData",
    "Track",
    "TrainOptions",
    "TrainingRun",
    "Weighting",
    "WidebandDesign",
    "WidebandLink",
    "__version__",
    "certify",
    "certify_layouts",
    "compare",
    "compare_channels",
    "design",
    "design_for_all",
    "fresh_draws",
    "life",
    "load",
    "load_responses",
    "prepare",
    "read_paths",
    "reproduce",
    "schedule",
    "select",
    "select_draws",
    "sweep",
    "tolerance",
    "track",
    "train",
]

_NAMES = {
    "aircomp": ("Link",),
    "channel.response_files": ("load_responses",),
    "channel.sampled": ("SampledResponse",),
    "core.errors": ("InvalidInput",),
    "designs.api": ("Design", "WidebandDesign", "design"),
    "designs.bounds": ("LayoutCertificate", "certify_layouts"),
    "designs.fresh": ("FreshDraws", "fresh_draws"),
    "designs.tolerance": ("Tolerance", "tolerance"),
    "designs.book": ("Book",),
    "designs.together": ("design_for_all",),
    "designs.turns": ("schedule",),
    "designs.life": ("Life", "life"),
    "designs.moving": ("Moving",),
    "designs.queues": ("Queues",),
    "designs.track": ("Track", "track"),
    "learning.compare": ("compare", "compare_channels"),
    "learning.data.arrays": ("ArrayData", "TorchData"),
    "learning.data.partition": ("PartitionOptions",),
    "learning.history": ("Runs", "TrainingRun"),
    "learning.optimisers": ("ServerOptions",),
    "learning.options": ("TrainOptions",),
    "learning.training": ("prepare", "train"),
    "study.api": ("reproduce", "sweep"),
    "study.load": ("load",),
    "study.stored": ("StoredStudy",),
    "scenario": (
        "Channel",
        "DeviceDraw",
        "Devices",
        "LinkBudget",
        "Radio",
        "Receiver",
        "Scenario",
        "Weighting",
    ),
    "scenario.motion": ("Paths", "RandomWaypoint", "StraightLines", "read_paths"),
    "selection.api": ("Draws", "Selection", "select", "select_draws"),
    "selection.certificate": ("Certificate", "certify"),
    "wideband": ("WidebandLink",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'airpass' has no attribute {name!r}")
    value = getattr(import_module(f"airpass.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

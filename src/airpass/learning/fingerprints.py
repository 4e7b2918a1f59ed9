"""Fingerprints of what a training run depends on, for checkpoints and results."""

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airpass.aircomp import Link
from airpass.core.references import is_reference, referenced_file
from airpass.core.registry import result_options
from airpass.core.types import Single
from airpass.designs.round_links import RoundLinks
from airpass.learning import models
from airpass.selection.api import Draws
from airpass.wideband import WidebandLink


def digest(data: Mapping[str, Any]) -> str:
    """Fingerprint of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def start_digest(model: Any, network: Any, state: Single) -> str:
    """Fingerprint of the layers and initial weights of a user's model, whose name does not say what it is.

    Parameters
    ----------
    model
        The user's argument.
    network
        The network that it makes.
    state
        Its initial state.

    Returns
    -------
    str
        The fingerprint; "" for the package's own models.
    """
    if isinstance(model, str) and model in models.MODELS:
        return ""
    layers = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(network))  # addresses differ between processes
    return hashlib.sha256(layers.encode() + state.tobytes()).hexdigest()


def code_digest(*references: Any) -> str:
    """Fingerprint of the files of `file.py:Name` and `package.module:Name`; "" if there are none."""
    found = []
    for text in references:
        if not (isinstance(text, str) and is_reference(text)):
            continue
        loaded = sys.modules.get(text.rpartition(":")[0])
        path = referenced_file(text) or Path(getattr(loaded, "__file__", None) or "")
        if path.is_file():
            found.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return digest({"files": found}) if found else ""


def blocks_digest(links: Sequence[Link]) -> str:
    """Fingerprint of the links of consecutive rounds; "" for none. Draws need not all be selected for it."""
    if not links:
        return ""
    if isinstance(links, RoundLinks):  # a run may be made longer: the number of rounds does not count
        return digest({"first": link_digest(links[0]), "config": links.config})
    if len(links) == 1:
        return link_digest(links[0])
    if isinstance(links, Draws):
        drawn = hashlib.sha256(links.channels.tobytes()).hexdigest()
        priorities = {} if links.priorities is None else {"priorities": links.priorities.tolist()}
        return digest({"first": link_digest(links[0]), "channels": [len(links), drawn], **priorities})
    return digest({"links": [link_digest(link) for link in links]})


def link_digest(link: Link) -> str:
    """Fingerprint of everything in a link that training depends on. Numbers of threads do not count."""
    method = getattr(link, "method", None)
    return digest(
        {
            "selected": link.selected.tolist(),
            "channels": [link.channels.real.tolist(), link.channels.imag.tolist()],
            "beam": [link.beam.real.tolist(), link.beam.imag.tolist()],
            "weights": link.weights.tolist(),
            "powers": [link.power, link.noise_power],
            "options": {} if method is None else result_options(method),
            **({"rule": link.rule} if isinstance(link, WidebandLink) else {}),
        }
    )

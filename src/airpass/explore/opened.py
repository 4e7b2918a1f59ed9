"""What `airpass explore` opens: a scenario, a design, a book, a training run, a study, or a link."""

import base64
import binascii
import json
import secrets
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airpass.core.errors import InvalidInput
from airpass.designs.api import Design
from airpass.designs.book import Book
from airpass.explore.state import State, Trusted, check_size, read_state, state_of
from airpass.explore.studies import OpenStudy, open_runs, open_stored
from airpass.learning.history import Runs
from airpass.results import HISTORY, load
from airpass.scenario import Scenario
from airpass.scenario.files import scenario_tables
from airpass.study.stored import open_study

LINK = "#state="  # how the part of a link begins that holds the state
LONGEST_STATE = 4 * 2**20  # bytes of an unpacked state


@dataclass(frozen=True, eq=False)
class Opened:
    """What the page shows first.

    Parameters
    ----------
    title
        Name of what was opened.
    state
        The first state, as JSON.
    study
        The study; None if none was opened.
    book
        The book; None if none was opened.
    trusted
        What messages of the page may name besides registered names.
    """

    title: str
    state: dict[str, Any]
    study: OpenStudy | None = None
    book: Book | None = None
    trusted: Trusted = field(default_factory=Trusted)
    start: str = field(default_factory=lambda: secrets.token_hex(8))  # differs between starts of the server


def open_path(path: str | None) -> Opened:
    """Open what the command line names.

    Parameters
    ----------
    path
        A scenario file (.toml), a JSON file of `design` or `schedule`, a folder of `train`, `sweep` or
        `reproduce`, or a link that the page has made. None: the paper's small set-up.

    Returns
    -------
    Opened
        The first state.
    """
    if path is None:
        return Opened("the paper's set-up", _first_state(Scenario.paper()))
    if LINK in path:
        return Opened("a link", unpacked(path.partition(LINK)[2]))
    place = Path(path)
    if not place.exists():
        raise InvalidInput(
            f"{path}: no such file or folder; give a scenario (.toml), a design (.json) or a run folder"
        )
    if place.suffix == ".toml":
        tables = scenario_tables(place)
        scenario = Scenario.from_dict(tables)
        check_size(scenario)
        return Opened(place.name, _first_state(scenario), trusted=_trusting(scenario))
    if place.suffix == ".parquet" or (place.is_dir() and not (place / HISTORY).exists()):
        return _study(open_stored(open_study(place)), place)
    found = load(place)
    if isinstance(found, Design):
        check_size(found.scenario)
        return Opened(place.name, state_of(found).to_dict(), trusted=_trusting(found.scenario))
    if isinstance(found, Book):
        check_size(found.scenario)
        state = State(found.scenario, found.seed, None).to_dict()
        return Opened(place.name, state, book=found, trusted=_trusting(found.scenario))
    if isinstance(found, Runs):
        return _study(open_runs(found, place if place.is_dir() else place.parent), place)
    raise InvalidInput(
        f"{path}: holds no room; give a scenario (.toml), a file of design or schedule (.json), or a folder "
        "of train, sweep or reproduce"
    )


def _study(study: OpenStudy, place: Path) -> Opened:
    """A study, with the scenario of its first trial in the room."""
    trusted = Trusted()
    state = _first_state(Scenario.paper())
    for trial in study.trials:
        trusted = trusted.with_channel(trial.scenario)
    for trial in study.trials:
        if trial.channels is not None:
            continue
        try:
            scenario = Scenario.from_dict(trial.scenario)
            check_size(scenario)
        except InvalidInput:
            continue
        state = {**_first_state(scenario), "seed": trial.seed}
        trusted = trusted.with_channel(scenario.to_dict())
        break
    return Opened(place.name or str(place), state, study=study, trusted=trusted)


def _trusting(scenario: Scenario) -> Trusted:
    return Trusted().with_channel(scenario.to_dict())


def _first_state(scenario: Scenario) -> dict[str, Any]:
    """Even spacing. Devices that were drawn stay a draw, so that the page can draw others."""
    return {
        "scenario": scenario_dict(scenario),
        "seed": scenario.seed,
        "layout_m": None,
        "array": None,
        "found": None,
    }


def scenario_dict(scenario: Scenario) -> dict[str, Any]:
    """Tables of a scenario; devices as a draw if they were drawn and nothing else is known of them.

    Parameters
    ----------
    scenario
        The scenario.

    Returns
    -------
    dict[str, Any]
        Tables that `Scenario.from_dict` reads.
    """
    tables = scenario.to_dict()
    drawn = scenario.devices.drawn_from
    if drawn is not None and scenario.channel.responses is None:
        again = drawn.draw()
        same = all(
            (getattr(again, name) == getattr(scenario.devices, name)).all() for name in tables["devices"]
        )
        if same:
            tables["devices"] = {
                "count": drawn.count,
                "seed": drawn.seed,
                "x_range_m": list(drawn.x_range_m),
                "y_range_m": list(drawn.y_range_m),
                "gain_range": list(drawn.gain_range),
                "z_m": list(drawn.z_m) if isinstance(drawn.z_m, tuple) else drawn.z_m,
            }
    return tables


def unpacked(text: str) -> dict[str, Any]:
    """The state of a link.

    Parameters
    ----------
    text
        JSON, compressed (deflate), in URL-safe base 64 without padding.

    Returns
    -------
    dict[str, Any]
        The state, which has been checked.
    """
    try:
        raw = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        reader = zlib.decompressobj(-zlib.MAX_WBITS)
        plain = reader.decompress(raw, LONGEST_STATE)
        whole = reader.eof and not reader.unconsumed_tail
        state: Any = json.loads(plain) if whole else None
    except (ValueError, binascii.Error, zlib.error, RecursionError):
        raise InvalidInput("link: is damaged; copy it again from the page") from None
    if not whole:
        raise InvalidInput("link: is damaged, or holds too large a state; copy it again from the page")
    read_state(state, Trusted())
    return dict(state)

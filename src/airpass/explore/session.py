"""The requests of one page: quick ones are answered here, long ones are passed to its child process.

A message is {"id": number, "type": name, ...}. The answer has the same id and the type "answer", "error" or,
for a job, "progress" until its end. Maps are binary: the id in 32 bits, then the map.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.text import one_line, shown
from airpass.core.version import __version__
from airpass.designs.api import Design
from airpass.explore import answers, exports, maps
from airpass.explore.jobs import JobRunner
from airpass.explore.opened import Opened, scenario_dict
from airpass.explore.state import LIMITS, State, read_method, read_scenario, read_state
from airpass.explore.studies import OpenStudy
from airpass.explore.worker import JOBS, book_json
from airpass.scenario import DeviceDraw, Scenario
from airpass.scenario.presets import PRESETS

LARGEST_ID = 2**32 - 1

Send = Callable[[dict[str, Any] | bytes], None]
Request = Mapping[str, Any]


class Session:
    """One page.

    Parameters
    ----------
    opened
        What the command opened.
    send
        Sends a message to the page; called in the thread of the server.
    on_failure
        Called with an exception that is not the user's.
    """

    def __init__(self, opened: Opened, send: Send, on_failure: Callable[[BaseException], None]) -> None:
        self.opened = opened
        self.send = send
        self.on_failure = on_failure
        self.jobs = JobRunner()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="airpass-explore")
        self._job: asyncio.Task[None] | None = None
        self._job_id = 0
        self._cache: tuple[str, Design] | None = None
        self._quick: dict[str, Callable[[Request], dict[str, Any] | bytes]] = {
            "hello": self._hello,
            "live": self._live,
            "map": self._map,
            "links": self._links,
            "draw": self._draw,
            "preset": self._preset,
            "export": self._export,
            "commands": self._commands,
            "study": self._study,
            "chart": self._chart,
            "point": self._point,
            "book": self._book,
        }

    async def receive(self, text: str | bytes) -> None:
        """Answer a message.

        Parameters
        ----------
        text
            The message. Anything is answered, if only with an error.
        """
        number = 0
        try:
            request = _request(text)
            number = request["id"]
            kind = request["type"]
            if kind == "cancel":
                self._cancel(request)
                self._answer(number, {})
            elif kind in JOBS:
                self._start_job(number, kind, request)
            else:
                name = checks.one_of("type", kind, [*self._quick, *JOBS, "cancel"])
                loop = asyncio.get_running_loop()
                self._answer(number, await loop.run_in_executor(self._thread, self._quick[name], request))
        except InvalidInput as error:
            self._refuse(number, str(error))
        except Exception as error:  # the server goes on
            self.on_failure(error)
            self._refuse(number, f"internal error: {type(error).__name__}: {error}")

    async def close(self) -> None:
        """End everything that was begun for the page."""
        await self.jobs.close()
        if self._job is not None:
            await asyncio.gather(self._job, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _answer(self, number: int, found: dict[str, Any] | bytes) -> None:
        if isinstance(found, bytes):
            self.send(number.to_bytes(4, "little") + found)
        else:
            self.send({"id": number, "type": "answer", **found})

    def _refuse(self, number: int, message: str) -> None:
        self.send({"id": number, "type": "error", "message": one_line(message)})

    # Jobs ------------------------------------------------------------------------------

    def _start_job(self, number: int, kind: str, request: Request) -> None:
        if self.jobs.busy:
            raise InvalidInput("another job is running: cancel it, or wait for its end")
        job = {key: value for key, value in request.items() if key not in ("id", "type", "job", "trusted")}
        job |= {"job": kind, "trusted": list(self.opened.trusted.channels)}
        self._job_id = number
        self._job = asyncio.get_running_loop().create_task(self._run_job(number, job))

    async def _run_job(self, number: int, job: dict[str, Any]) -> None:
        try:
            last = await self.jobs.run(job, lambda message: self.send({**message, "id": number}))
        except Exception as error:
            self.on_failure(error)
            last = {"type": "error", "message": f"internal error: {type(error).__name__}: {error}"}
        if last["type"] == "result":
            self._answer(number, {key: value for key, value in last.items() if key != "type"})
        else:
            self._refuse(number, str(last.get("message", "cancelled")))

    def _cancel(self, request: Request) -> None:
        if request.get("job") == self._job_id:
            self.jobs.cancel()

    # Quick requests, in the thread of this page ---------------------------------------------

    def _design(self, request: Request) -> Design:
        """The design of the request's state; the last one is kept, as maps and exports ask for it again."""
        key = json.dumps(request.get("state"), sort_keys=True)
        if self._cache is None or self._cache[0] != key:
            self._cache = key, read_state(request.get("state"), self.opened.trusted).design()
        return self._cache[1]

    def _hello(self, _: Request) -> dict[str, Any]:
        return {
            "version": __version__,
            "title": self.opened.title,
            "state": self.opened.state,
            "methods": answers.methods(),
            "looks": answers.looks_table(),
            "limits": LIMITS,
            "presets": list(PRESETS),
            "start": self.opened.start,
            "study": self.opened.study is not None,
            "book": self.opened.book is not None,
        }

    def _live(self, request: Request) -> dict[str, Any]:
        return answers.answer(self._design(request))

    def _map(self, request: Request) -> bytes:
        found = self._design(request)
        if found.scenario.channel.responses is not None:
            raise InvalidInput("responses are known for their devices only, so that there is no map")
        return maps.gain_map(found, request)

    def _links(self, request: Request) -> dict[str, Any]:
        found = self._design(request)
        device = checks.whole("device", request.get("device"), 0)
        if device >= found.scenario.devices.count:
            raise InvalidInput(f"device = {device}: there are {found.scenario.devices.count}")
        return {"links": answers.links(found, device)}

    def _draw(self, request: Request) -> dict[str, Any]:
        """Devices that are drawn; of more than there are, to add some."""
        table = request.get("devices")
        if not isinstance(table, dict):
            raise InvalidInput(f"devices = {shown(table)}: must be an object")
        scenario = read_scenario({"devices": table}, self.opened.trusted)
        return {"devices": answers.devices(scenario)}

    def _preset(self, request: Request) -> dict[str, Any]:
        name = checks.one_of("preset", request.get("name"), PRESETS)
        scenario = Scenario.preset(name)
        state = State(scenario, 0, None).to_dict()
        return {"state": {**state, "scenario": scenario_dict(scenario)}}

    def _export(self, request: Request) -> dict[str, Any]:
        found, kind = self._design(request), request.get("kind")
        if kind in exports.PICTURES:
            return {"base64": exports.picture(found, str(kind))}
        return {"text": exports.text_export(found, checks.one_of("kind", kind, exports.KINDS))}

    def _commands(self, request: Request) -> dict[str, Any]:
        return dict(exports.commands(self._design(request)))

    def _study(self, _: Request) -> dict[str, Any]:
        return self._opened_study().describe()

    def _chart(self, request: Request) -> dict[str, Any]:
        return self._opened_study().chart(request.get("metric"), request.get("over"))

    def _point(self, request: Request) -> dict[str, Any]:
        """The state of a point of a study, and the method that was used there."""
        tables, method, seed = self._opened_study().scenario(
            request.get("scheme"), request.get("point"), request.get("trial", 0)
        )
        scenario = read_scenario(tables, self.opened.trusted)
        state = State(scenario, seed, None).to_dict()
        named = method.get("method")
        known = isinstance(named, str) and any(one["name"] == named for one in answers.methods())
        used = {"name": named, "options": method.get("options", {})} if known else None
        if used is not None:
            read_method(used)
        return {"state": {**state, "scenario": scenario_dict(scenario)}, "method": used}

    def _book(self, _: Request) -> dict[str, Any]:
        if self.opened.book is None:
            raise InvalidInput("no book was opened: airpass explore BOOK.json opens one")
        return book_json(self.opened.book)

    def _opened_study(self) -> OpenStudy:
        if self.opened.study is None:
            raise InvalidInput("no study was opened: airpass explore FOLDER opens one")
        return self.opened.study


def _request(text: str | bytes) -> Request:
    """A message as an object with a number and a type."""
    if not isinstance(text, str):
        raise InvalidInput("messages must be text")
    try:
        request = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InvalidInput("message: must be JSON") from None
    if not isinstance(request, dict):
        raise InvalidInput("message: must be an object")
    number = request.get("id")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= LARGEST_ID:
        raise InvalidInput(f"id = {shown(number)}: must be a whole number from 0 to {LARGEST_ID}")
    if not isinstance(request.get("type"), str):
        request = {**request, "type": ""}
    return request


def _no_constant(name: str) -> None:
    raise ValueError(name)


def warm_up() -> None:
    """Compile the kernels of live answers, or load them from the cache."""
    scenario = Scenario(devices=DeviceDraw(count=4).draw())
    found = State(scenario, 0, scenario.uniform_layout()).design()
    found.mean_gain(np.zeros(1), np.zeros(1))

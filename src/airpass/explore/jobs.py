"""The child process of a page, which runs its long jobs one at a time."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from airpass.core.errors import InvalidInput
from airpass.core.workers import interrupts_held

LONGEST_LINE = 64 * 2**20  # bytes of a message of the child
PATIENCE_S = 3.0  # until a job that was cancelled is killed

OnProgress = Callable[[dict[str, Any]], None]


class JobRunner:
    """Starts the child when it is first needed, and again after it was killed."""

    def __init__(self) -> None:
        self._child: asyncio.subprocess.Process | None = None
        self._busy = False
        self._cancelled = False
        self._killer: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Whether a job is running."""
        return self._busy

    async def run(self, job: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Run a job.

        Parameters
        ----------
        job
            The job, see `airpass.explore.worker`.
        on_progress
            Callback for progress messages.

        Returns
        -------
        dict[str, Any]
            The last message: a result, an error, or "cancelled".
        """
        if self._busy:
            raise InvalidInput("another job is running: cancel it, or wait for its end")
        self._busy, self._cancelled = True, False
        try:
            child = await self._start()
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                child.stdin.write(json.dumps(job).encode() + b"\n")
                await child.stdin.drain()
                while line := await child.stdout.readline():
                    message: dict[str, Any] = json.loads(line)
                    if message.get("type") != "progress":
                        return message
                    on_progress(message)
            except (ConnectionError, ValueError):  # the child has ended, or its line is cut off
                pass
            await self._end()
            if self._cancelled:
                return {"type": "cancelled"}
            return {
                "type": "error",
                "message": "the process of the job was killed (out of memory?); try again",
            }
        finally:
            self._busy = False
            if self._killer is not None:
                self._killer.cancel()
                self._killer = None

    def cancel(self) -> None:
        """End the job. If it does not react, its process is killed."""
        if not self._busy or self._cancelled:
            return
        self._cancelled = True
        if self._child is not None and self._child.returncode is None:
            self._child.send_signal(signal.SIGINT)
        self._killer = asyncio.get_running_loop().call_later(PATIENCE_S, self._kill)

    async def close(self) -> None:
        """End the process."""
        self._cancelled = True
        await self._end()

    async def _start(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            with interrupts_held():  # until the child can handle them
                self._child = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "airpass.explore.worker",
                    str(os.getpid()),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=LONGEST_LINE,
                    start_new_session=True,  # Ctrl-C in the terminal ends the server, which ends this
                )
        return self._child

    def _kill(self) -> None:
        """Kill the process and those that it has started."""
        if self._child is not None and self._child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)

    async def _end(self) -> None:
        self._kill()
        if self._child is not None:
            await self._child.wait()
            self._child = None

"""What tests of the explorer share: a server in a thread, and a client that speaks to it like the page."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from airpass.explore.opened import Opened, open_path
from airpass.explore.server import Server


@contextmanager
def serving(opened: Opened | None = None) -> Iterator[Server]:
    """A server that runs in another thread."""
    server = Server(opened or open_path(None))
    ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await server.run(ready.set)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(30)
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(server.stop)
        thread.join(30)
        assert not thread.is_alive()


class Client:
    """A connection that sends requests one after the other."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self.socket = socket
        self.number = 0
        self.progress: list[dict[str, Any]] = []

    async def send(self, kind: str, /, **body: Any) -> int:
        self.number += 1
        await self.socket.write_message(json.dumps({"id": self.number, "type": kind, **body}))
        return self.number

    async def last(self, number: int) -> Any:
        """The answer to a request: a dictionary, or bytes."""
        while True:
            message = await asyncio.wait_for(self.socket.read_message(), 120)
            assert message is not None, "connection closed"
            if isinstance(message, bytes):
                assert int.from_bytes(message[:4], "little") == number
                return message[4:]
            found = json.loads(message)
            if found["type"] == "progress":
                self.progress.append(found)
            elif found["id"] == number:
                return found

    async def ask(self, kind: str, /, **body: Any) -> Any:
        return await self.last(await self.send(kind, **body))


async def connect(server: Server) -> WebSocketClientConnection:
    """A connection with the headers of the page."""
    host = f"127.0.0.1:{server.port}"
    headers = {"Origin": f"http://{host}", "Cookie": f"{server.cookie}={server.token}"}
    request = HTTPRequest(f"ws://{host}/socket", headers=headers)
    return await websocket_connect(request, max_message_size=2**26)


async def close(socket: WebSocketClientConnection) -> None:
    """Close a connection, and wait until it is closed."""
    socket.close()
    while await asyncio.wait_for(socket.read_message(), 10) is not None:
        pass
    await asyncio.sleep(0)  # so that its stream is closed too


def talk(server: Server, script: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
    """Run a conversation with the server."""

    async def main() -> Any:
        client = Client(await connect(server))
        try:
            return await script(client)
        finally:
            await close(client.socket)

    return asyncio.run(main())

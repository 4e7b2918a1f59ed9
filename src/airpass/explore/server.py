"""The server of the page: loopback only, with a token per start, and checks of Host and Origin."""

import asyncio
import hmac
import json
import logging
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import tornado.httpserver
import tornado.web
import tornado.websocket

from airpass.core.errors import InvalidInput
from airpass.explore.opened import Opened
from airpass.explore.session import Session, warm_up

LOOPBACK = "127.0.0.1"
LARGEST_MESSAGE = 4 * 2**20  # bytes
MOST_PAGES = 8
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class Server:
    """Serves the page until it is stopped.

    Parameters
    ----------
    opened
        What the page shows first.
    port
        Port; 0 for any that is free.
    debug
        Whether unexpected errors are shown with their tracebacks.
    """

    def __init__(self, opened: Opened, port: int = 0, debug: bool = False) -> None:
        self.opened = opened
        self.debug = debug
        self.token = secrets.token_urlsafe(24)
        self.pages: set[Socket] = set()
        self._assets = _assets()
        try:
            listening = socket.create_server((LOOPBACK, port), backlog=128)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidInput(
                f"port = {port}: cannot be used ({reason}); choose another, or omit it"
            ) from None
        listening.setblocking(False)
        self._listening = listening
        self.port: int = listening.getsockname()[1]
        self.loop: asyncio.AbstractEventLoop | None = None  # while it runs
        self._stop: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """Address of the page, with the token."""
        return f"http://{LOOPBACK}:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """Name of the cookie that holds the token; cookies are shared by all ports of a host."""
        return f"airpass-{self.port}"

    def hosts(self) -> tuple[str, ...]:
        """Values of the header Host that are answered."""
        return (f"{LOOPBACK}:{self.port}", f"localhost:{self.port}")

    async def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Serve until `stop` is called, or SIGINT or SIGTERM arrives.

        Parameters
        ----------
        on_ready
            Called once the page can be opened.
        """
        logging.getLogger("tornado").setLevel(logging.ERROR if self.debug else logging.CRITICAL)
        self.loop = loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self._stop.set)
            except (ValueError, NotImplementedError, RuntimeError):  # not in the main thread
                break
        application = tornado.web.Application(
            [
                (r"/", Page, {"server": self}),
                (r"/socket", Socket, {"server": self}),
                (r"/page/(.+)", Asset, {"server": self}),
            ],
            default_handler_class=Missing,
            default_handler_args={"server": self},
            websocket_max_message_size=LARGEST_MESSAGE,
            websocket_ping_interval=20,
            log_function=lambda _: None,
        )
        http = tornado.httpserver.HTTPServer(application, max_body_size=1024, max_header_size=65536)
        http.add_socket(self._listening)
        warming = loop.run_in_executor(None, warm_up)
        if on_ready is not None:
            on_ready()
        await self._stop.wait()
        http.stop()
        for page in list(self.pages):
            page.close(1001, "server ended")
            await page.end()
        warming.cancel()
        await http.close_all_connections()

    def stop(self) -> None:
        """End `run`, from its own thread."""
        if self._stop is not None:
            self._stop.set()

    def asset(self, name: str) -> bytes | None:
        """Content of a file of the page; None if there is no such file."""
        return self._assets.get(name)

    def failed(self, error: BaseException) -> None:
        """Report an unexpected error."""
        if self.debug:
            logging.getLogger("airpass").error("explorer", exc_info=error)
        else:
            sys.stderr.write(
                f"airpass: internal error: {type(error).__name__}: {error} (--debug shows more)\n"
            )


def _assets() -> dict[str, bytes]:
    """The files of the page by their path."""
    found = {}
    root = files("airpass.explore") / "page"
    waiting = [("", root)]
    while waiting:
        prefix, folder = waiting.pop()
        for item in folder.iterdir():
            name = f"{prefix}{item.name}"
            if item.is_dir():
                waiting.append((f"{name}/", item))
            else:
                found[name] = item.read_bytes()
    return found


class Guarded(tornado.web.RequestHandler):
    """Refuses requests for other hosts, and sets the headers of all answers."""

    def initialize(self, server: Server) -> None:
        """Keep the server."""
        self.server = server

    def prepare(self) -> None:
        """Refuse a Host that is not this machine: a name of another site may lead here (DNS rebinding)."""
        if self.request.headers.get("Host", "") not in self.server.hosts():
            raise tornado.web.HTTPError(403, "wrong Host")

    def set_default_headers(self) -> None:
        """Nothing from outside, no frames, no cache."""
        self.set_header("Server", "airpass")
        self.set_header(
            "Content-Security-Policy",
            "default-src 'self'; connect-src 'self' ws://127.0.0.1:* ws://localhost:*; "
            "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'",
        )
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("X-Frame-Options", "DENY")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Cross-Origin-Opener-Policy", "same-origin")
        self.set_header("Cache-Control", "no-store")

    def write_error(self, status_code: int, **_: Any) -> None:
        """One line, without details."""
        texts = {
            403: "Forbidden. Open the address that airpass explore has printed, with its token.",
            404: "Not found.",
        }
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(texts.get(status_code, f"Error {status_code}.") + "\n")

    def has_token(self) -> bool:
        """Whether the request has the token, in its address or as a cookie."""
        given = (self.get_query_argument("token", ""), self.get_cookie(self.server.cookie, "") or "")
        expected = self.server.token.encode()
        return any(hmac.compare_digest(one.encode("utf-8", "replace"), expected) for one in given)


class Missing(Guarded):
    """Any other path."""

    def prepare(self) -> None:
        """Refuse it."""
        super().prepare()
        raise tornado.web.HTTPError(404)


class Page(Guarded):
    """The page itself. Its token becomes a cookie, so that it can be reloaded without."""

    def get(self) -> None:
        """Serve it to whoever has the token."""
        if not self.has_token():
            raise tornado.web.HTTPError(403, "no token")
        self.set_cookie(self.server.cookie, self.server.token, httponly=True, samesite="Strict", path="/")
        self.set_header("Content-Type", TYPES[".html"])
        content = self.server.asset("index.html")
        assert content is not None
        self.finish(content)


class Asset(Guarded):
    """Scripts, styles and pictures of the page. They are those of the package, and hold nothing private."""

    def get(self, name: str) -> None:
        """Serve a file of the page."""
        content = self.server.asset(name)
        kind = TYPES.get(name[name.rfind(".") :]) if "." in name else None
        if content is None or kind is None:
            raise tornado.web.HTTPError(404)
        self.set_header("Content-Type", kind)
        self.finish(content)


class Socket(tornado.websocket.WebSocketHandler):
    """The connection of one page."""

    session: Session | None = None

    def initialize(self, server: Server) -> None:
        """Keep the server."""
        self.server = server

    def prepare(self) -> None:
        """Refuse other hosts, other origins, wrong tokens, and too many pages."""
        if self.request.headers.get("Host", "") not in self.server.hosts():
            raise tornado.web.HTTPError(403, "wrong Host")
        if not self.check_origin(self.request.headers.get("Origin", "")):
            raise tornado.web.HTTPError(403, "wrong Origin")
        if not Guarded.has_token(self):  # type: ignore[arg-type]
            raise tornado.web.HTTPError(403, "no token")
        if len(self.server.pages) >= MOST_PAGES:
            raise tornado.web.HTTPError(503, "too many pages")

    def check_origin(self, origin: str) -> bool:
        """Whether the page is ours: its origin is the host that it was served from."""
        parts = urlsplit(origin)
        return parts.scheme == "http" and parts.netloc == self.request.headers.get("Host", "")

    def open(self, *_: str, **__: str) -> None:
        """Begin a session."""
        self.set_nodelay(True)
        self.session = Session(self.server.opened, self._send, self.server.failed)
        self.server.pages.add(self)

    async def on_message(self, message: str | bytes) -> None:
        """Pass a message on. It is answered while others arrive."""
        if self.session is not None:
            task = asyncio.get_running_loop().create_task(self.session.receive(message))
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)

    def on_close(self) -> None:
        """End the session."""
        task = asyncio.get_running_loop().create_task(self.end())
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)

    async def end(self) -> None:
        """End the session and wait for it."""
        self.server.pages.discard(self)
        session, self.session = self.session, None
        if session is not None:
            await session.close()

    def _send(self, message: dict[str, Any] | bytes) -> None:
        if self.ws_connection is None:  # the page was closed meanwhile
            return
        binary = isinstance(message, bytes)
        sent = message if isinstance(message, bytes) else json.dumps(message, allow_nan=False)
        try:
            task = asyncio.ensure_future(self.write_message(sent, binary=binary))
        except tornado.websocket.WebSocketClosedError:
            return
        _tasks.add(task)
        task.add_done_callback(_forget)


def _forget(task: "asyncio.Future[Any]") -> None:
    _tasks.discard(task)
    if not task.cancelled():
        task.exception()  # the page was closed meanwhile


_tasks: "set[asyncio.Future[Any]]" = set()  # the event loop keeps weak references only

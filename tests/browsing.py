"""What tests of the page in a browser share."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from playwright.sync_api import Browser, Page

from airpass.explore.opened import Opened
from airpass.explore.server import Server

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",  # a sandbox cannot be set up by root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
MODULES = Path(__file__).parent / "browser" / "node_modules"

Serve = Callable[[Opened], Server]


def missing(what: str) -> NoReturn:
    """Skip a test, or fail if a browser is required."""
    text = f"{what} not found: run make browser"
    if os.environ.get("AIRPASS_REQUIRE_BROWSER"):
        pytest.fail(text)
    pytest.skip(text)


class Visitor:
    """Opens pages, and notes requests to other hosts and errors in the console."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.outside: list[str] = []
        self.errors: list[str] = []

    def visit(self, server: Server, path: str = "", **options: Any) -> Page:
        settings: Any = {"viewport": {"width": 1200, "height": 900}, "accept_downloads": True} | options
        page = self.browser.new_context(**settings).new_page()
        page.set_default_timeout(60_000)
        self.watch(page, server)
        page.goto(server.url + path)
        page.locator("#count").filter(has_text=re.compile(r"\d")).wait_for()  # the first answer has come
        return page

    def watch(self, page: Page, server: Server) -> None:
        own = (f"http://127.0.0.1:{server.port}/", "blob:", "data:")

        def request(sent: Any) -> None:
            if not sent.url.startswith(own):
                self.outside.append(sent.url)

        page.context.on("request", request)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )

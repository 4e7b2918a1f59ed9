"""Chromium for the tests of the explorer's page.

`make browser` finds or installs it. Without it the tests are skipped with a reason; if
AIRPASS_REQUIRE_BROWSER is set, as in CI, they fail instead.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from airpass.explore.opened import Opened, open_path
from airpass.explore.server import Server
from browsing import FLAGS, MODULES, NAMES, Serve, Visitor, missing
from exploring import serving

expect.set_options(timeout=60_000)  # a machine that is busy answers late


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("AIRPASS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("Chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker."""
    script = MODULES / "axe-core" / "axe.min.js"
    if not script.is_file():
        missing("axe-core")
    return script.read_text()


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    found = Visitor(browser)
    yield found
    for context in browser.contexts:
        context.close()
    assert found.outside == []
    assert found.errors == []


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that end with the test."""
    running: list[AbstractContextManager[Server]] = []

    def start(opened: Opened) -> Server:
        running.append(serving(opened))
        return running[-1].__enter__()

    yield start
    for one in running:
        one.__exit__(None, None, None)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(open_path(None)) as running:
        yield running


@pytest.fixture
def page(visitor: Visitor, server: Server) -> Page:
    return visitor.visit(server)

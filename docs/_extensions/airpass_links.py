"""Sphinx extension: warn of dead links within the site, also those of pictures and of raw HTML."""

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect a link or an anchor."""
        for name, value in attrs:
            if name in ("href", "src") and tag != "use":
                self.links.append(value or "")
            elif name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("build-finished", check, priority=900)  # after others have copied files
    return {"parallel_read_safe": True}


def check(app: Sphinx, exception: Exception | None) -> None:
    """Warn of every dead link."""
    if exception is not None or app.builder.format != "html":
        return
    root = Path(app.outdir)
    read = cache(Page)
    for path in sorted(root.rglob("*.html")):
        for link in sorted(set(dead(path, read))):
            log.warning("%s: dead link %s", path.relative_to(root), link)


def dead(path: Path, read: Any) -> Iterator[str]:
    """Links of a page to files or anchors of the site that do not exist."""
    for link in read(path).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = path.parent / unquote(parts.path) if parts.path else path
        if target.is_dir():
            target /= "index.html"
        lost = not target.is_file()
        if not lost and target.suffix == ".html":
            lost = unquote(parts.fragment) not in read(target.resolve()).anchors
        if lost:
            yield link

"""Sphinx extension: pages that are made from the code, and references to public names."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import airpass
from airpass import channel, designs, geometry, selection

KINDS = {
    "Selection": (
        selection.METHODS,
        "Devices and beam for given channels: `airpass.select`, `--method` of `select`.",
    ),
    "Geometry": (
        geometry.METHODS,
        "Antennas for a given beam: `geometry` of a scheme, `--geometry` of `design`.",
    ),
    "Design": (designs.METHODS, "Devices, beam and antennas: `airpass.design`, `--method` of `design`."),
    "Channel": (channel.MODELS, "Channel models: `model` of the table `[channel]` of a scenario."),
}
HEAD = """% Made from the code by docs/_extensions/airpass_pages.py.
# Methods and their options

`airpass methods --options` prints this list. Options are given as `--option NAME=VALUE`, in `options` of a
scheme, or as arguments of the class. [A tutorial](../tutorials/own-method.md) adds a method.
P marks values of section VI-A of the paper; [tuning](../science/tuning.md) has the reasons for others.
"""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parts of the extension."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("builder-inited", write_methods)
    app.connect("missing-reference", public_name)
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("autodoc-process-docstring", describe_fields, priority=400)  # before napoleon
    app.connect("doctree-resolved", finish_page)
    return {"parallel_read_safe": True}


def write_methods(app: Sphinx) -> None:
    """Write reference/methods.md."""
    path = Path(app.srcdir) / "reference" / "methods.md"
    text = HEAD + "".join(section(title, *kind) for title, kind in KINDS.items())
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def section(title: str, registry: Any, about: str) -> str:
    """The methods of a kind."""
    return f"\n## {title}\n\n{about}\n" + "".join(method(found) for found in registry.methods().values())


def method(found: Any) -> str:
    """A method with a table of its options."""
    kind = type(found)
    text = f"\n### {found.name}\n\n{found.summary}. `{kind.__module__}.{kind.__qualname__}`\n"
    lines = [f"| `{name}` | {default} | {meaning} |" for name, default, meaning in options(found)]
    return text + (
        "\n| option | default | meaning |\n|---|---|---|\n" + "\n".join(lines) + "\n" if lines else ""
    )


def options(found: Any) -> Iterator[tuple[str, str, str]]:
    """Name, default and meaning of every option. The meaning is the comment beside the field."""
    said = {}
    for base in reversed(type(found).__mro__):
        if base.__module__.startswith("airpass.") and "__dataclass_fields__" in vars(base):
            said |= comments(inspect.getsource(base))
    for one in fields(found):
        value = getattr(found, one.name)
        nested = getattr(value, "name", None)
        default = f"`{nested}`" if isinstance(nested, str) else "" if value is MISSING else f"`{value}`"
        yield one.name, default.replace("|", "\\|"), said.get(one.name, "").replace("|", "\\|")


def comments(source: str) -> dict[str, str]:
    """Comments beside fields, or in the lines above them."""
    found, above = {}, []
    for line in source.splitlines():
        if match := re.match(r"    (\w+): .*?(?:  # (.*))?$", line):
            found[match[1]] = match[2] or " ".join(above)
            above = []
        elif match := re.match(r"    # (.*)", line):
            above.append(match[1])
        else:
            above = []
    return found


def public_name(app: Sphinx, env: Any, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    """Resolve a name by the module that defines it to the page of the public name."""
    target = node.get("reftarget", "")
    name = target.rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in airpass.__all__ or target == f"airpass.{name}":
        return None
    domain = env.get_domain("py")
    found: nodes.Element | None = domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", f"airpass.{name}", node, content
    )
    return found


def describe_fields(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Parameters of a class of options: its fields, with the comments beside them."""
    if what != "class" or not is_dataclass(obj) or "Parameters" in lines:
        return
    said = comments(inspect.getsource(obj))
    if not said:
        return
    lines += ["", "Parameters", "----------"]
    for one in fields(obj):
        lines += [one.name, f"    {(said.get(one.name) or one.name.replace('_', ' ')).rstrip('.')}."]


def finish_page(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Link pictures to their files, which shows them in full size; set dashes of field lists."""
    for text in list(doctree.findall(nodes.Text)):
        if text.astext() == " -- ":  # between a parameter and its meaning
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        parent, known = image.parent, app.env.images.get(image.get("uri", ""))
        if known is None or isinstance(parent, nodes.reference):
            continue
        way = app.builder.get_relative_uri(page, "index").rpartition("/")[0]
        target = "/".join(filter(None, (way, app.builder.imagedir, known[1])))
        link = nodes.reference("", "", image.deepcopy(), refuri=target, internal=True)
        if not isinstance(parent, nodes.TextElement):  # a picture of its own, not within a paragraph
            link["classes"].append("image-reference")
        parent.replace(image, link)


def plain_bars(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape the bars and stars of formulas such as |m^H g|, which reStructuredText takes for markup."""
    for place, line in enumerate(lines):
        parts = line.split("`")
        parts[::2] = [part.replace("|", "\\|").replace("*", "\\*") for part in parts[::2]]
        lines[place] = "`".join(parts)

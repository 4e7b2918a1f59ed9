"""Sphinx extension: a page with all figures and the command of each."""

import os
from pathlib import Path
from typing import Any

from mdit_py_plugins.anchors.index import slugify
from sphinx.application import Sphinx

from airpass import __version__
from airpass.study.known import known_figures
from airpass.study.report import typeset

SCALE = "paper"
RESULTS = Path("results") / __version__ / SCALE  # in the repository
HEAD = """% Made from the stored results by docs/_extensions/airpass_gallery.py.
# Gallery

Every picture with the command that makes it. A click opens it in full size.

## Rooms, designs and effects

::::{grid} 1 2 2 2
:gutter: 3

"""
FIGURES = """::::

## Figures

The rows of these pictures are stored in the repository; the [results](results.md) say what came out.

::::{grid} 1 2 2 2
:gutter: 3

"""
# Image, title, page, and the lines of its command.
PICTURES = (
    (
        "design.png",
        "A design and its scores",
        "../start/index.md",
        "airpass design --devices 50 --waveguides 10 --antennas 10 \\\n"
        "  --snr-db -10 --seed 7 --figure room.png",
    ),
    ("explorer.png", "The explorer", "../howto/explorer.md", "airpass explore"),
    (
        "motion.gif",
        "Devices that walk, with a new layout every 100 ms",
        "../howto/motion.md",
        "airpass track --devices 50 --waveguides 10 --antennas 10 \\\n"
        "  --snr-db -10 --seed 7 --speed-m-s 1 --seconds 1 \\\n"
        "  --layout-every-ms 100 --animation room.gif",
    ),
    (
        "channel-cylinders.png",
        "People as obstacles",
        "../howto/channels.md",
        "airpass design --scenario room.toml --figure room.png",
    ),
    (
        "channel-places.png",
        "Antennas on given places",
        "../howto/channels.md",
        "airpass design --set channel.candidates_m=2.0 \\\n  --figure room.png",
    ),
    (
        "traced-design.png",
        "A design on ray-traced responses",
        "../howto/ray-tracing.md",
        "airpass design --scenario examples/traced.toml \\\n  --figure room.png",
    ),
    (
        "motion-life.png",
        "Devices after they have moved",
        "../howto/motion.md",
        "python benchmarks/motion.py figure",
    ),
    ("plus-tolerance.png", "Position errors", "../howto/tolerance.md", "python benchmarks/plus.py figure"),
    ("segments.png", "Segmented waveguides", "../howto/channels.md", "python benchmarks/segments.py figure"),
    ("ofdm.png", "Subcarriers", "../howto/ofdm.md", "python benchmarks/ofdm.py figure"),
    (
        "error-scale.png",
        "The error scale",
        "../concepts/error-scale.md",
        "python benchmarks/error_scale.py figure",
    ),
    ("arrays.png", "Shapes of arrays", "baselines.md", "python benchmarks/arrays.py figure"),
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_gallery)
    return {"parallel_read_safe": True}


def write_gallery(app: Sphinx) -> None:
    """Write science/gallery.md."""
    page = Path(app.srcdir) / "science" / "gallery.md"
    root = Path(app.srcdir).parent
    text = HEAD + "".join(
        card(f"../images/{image}", title, way, command) for image, title, way, command in PICTURES
    )
    text += FIGURES
    for name, figure in known_figures().items():
        folder = root / RESULTS / name
        if not (folder / f"{name}.png").is_file():
            continue
        picture = os.path.relpath(folder / f"{name}.png", page.parent)
        command = f"airpass reproduce {name} --scale {SCALE}"
        heading = typeset(f"{name}: {figure.titled(SCALE)}")
        text += card(picture, heading, f"results.md#{slugify(heading)}", command)
    text += "::::\n"
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def card(picture: str, title: str, way: str, command: str) -> str:
    """One picture."""
    lines = "\n".join(f"$ {line}" if number == 0 else line for number, line in enumerate(command.split("\n")))
    return f""":::{{grid-item-card}}

```{{image}} {picture}
:alt: {title}
```

[{title}]({way})

```console
{lines}
```
:::

"""

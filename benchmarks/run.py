"""The benchmark suite. Run: make bench, or python benchmarks/run.py [SECTION...]

Sections are measured one after the other and written to benchmarks/latest.json; sections that are not
measured keep their entries. docs/science/benchmarks.md is generated from that file. Run on an otherwise
idle machine.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # sections that use more threads set them explicitly

import argparse  # noqa: E402
import importlib  # noqa: E402
import json  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

from airpass.core.files import write_atomically  # noqa: E402
from suite import page  # noqa: E402

HERE = Path(__file__).parent
LATEST = HERE / "latest.json"
PAGE = HERE.parent / "docs" / "science" / "benchmarks.md"


def main() -> None:
    """Measure the requested sections and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(page.SECTIONS))
    parser.add_argument("--page", action="store_true", help="only regenerate the page")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.sections if name not in page.SECTIONS]
    if unknown:
        parser.error(f"unknown section {unknown[0]!r}: must be one of {', '.join(page.SECTIONS)}")
    document = json.loads(LATEST.read_text()) if LATEST.exists() else {"sections": {}}
    for name in [] if chosen.page else chosen.sections or page.SECTIONS:
        print(f"{name} ...", flush=True)
        began = time.perf_counter()
        section = importlib.import_module(f"suite.{name}").run().document()
        section["took_s"] = round(time.perf_counter() - began)
        section["measured"] = page.provenance()
        document["sections"][name] = section
        write_atomically(LATEST, json.dumps(document, indent=1).encode())
        print("\n".join(page.section_lines(section)), flush=True)
    PAGE.write_text(page.markdown(document))


if __name__ == "__main__":
    main()

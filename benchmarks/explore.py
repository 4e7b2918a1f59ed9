"""Time from a drag to its answer in the explorer, and frames per second, in a real browser.

    python benchmarks/explore.py [--moves 300]

A device is dragged by the mouse in steps of 16 ms, with K = 50 and K = 500 devices and M = N = 10, on an idle
machine and while a design runs. The answer's time is measured by the page from the request to the answer, and
frames by `requestAnimationFrame`.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
from typing import Any

from playwright.sync_api import Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FRAMES = """() => {
  window.frames = [];
  const note = (time) => { window.frames.push(time); window.noting = requestAnimationFrame(note); };
  window.noting = requestAnimationFrame(note);
}"""


def drag(page: Page, moves: int) -> dict[str, float]:
    """Drag device 0 back and forth; times in milliseconds, and frames per second."""
    box = page.locator("#room svg").bounding_box()
    place = page.locator('[data-device="0"]').get_attribute("transform") or ""
    assert box is not None
    x, y = (float(part) for part in place.removeprefix("translate(").removesuffix(")").split(","))
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.evaluate("async () => { (await import('/page/store.js')).store.roundTrips.length = 0; }")
    page.evaluate(FRAMES)
    for move in range(moves):
        page.mouse.move(box["x"] + x + 60.0 * ((move % 40) / 20.0 - 1.0), box["y"] + y)
        page.wait_for_timeout(16)
    frames = page.evaluate("() => { cancelAnimationFrame(window.noting); return window.frames; }")
    trips = page.evaluate("async () => (await import('/page/store.js')).store.roundTrips")
    page.mouse.up()
    gaps = [after - before for before, after in itertools.pairwise(frames)]
    return {
        "answers": len(trips),
        "median_ms": round(statistics.median(trips), 2),
        "p95_ms": round(sorted(trips)[int(0.95 * len(trips))], 2),
        "frames_per_s": round(1000.0 / statistics.mean(gaps), 1),
        "p95_frame_ms": round(sorted(gaps)[int(0.95 * len(gaps))], 1),
    }


def measure(moves: int) -> list[dict[str, Any]]:
    """All cases."""
    path = os.environ.get("AIRPASS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)))
    command = [sys.executable, "-m", "airpass", "explore", "--no-browser"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,  # noqa: S603
        sync_playwright() as playwright,
    ):
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            browser = playwright.chromium.launch(
                executable_path=path,
                args=["--no-sandbox", "--disable-background-networking", "--disable-sync"],
            )
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            page.goto(url)
            page.locator("#of").filter(has_text="10").wait_for()
            return cases(page, moves)
        finally:
            server.terminate()


def cases(page: Page, moves: int) -> list[dict[str, Any]]:
    """Both numbers of devices, without and with a design that runs."""
    found = []
    sizes = {"waveguides": 10, "antennas": 10}
    for devices, snr_db in ((50, -12.0), (500, -24.0)):
        page.locator("#tab-setup").click()
        for name, value in (sizes | {"devices": devices, "snr": snr_db}).items():
            page.locator(f"#field-{name}").fill(f"{value:g}")
            page.keyboard.press("Tab")
        page.locator("#of").filter(has_text=str(devices)).wait_for()
        page.wait_for_timeout(1500)
        drag(page, 20)
        found.append({"devices": devices, "design": False, **drag(page, moves)})
        page.locator("#tab-design").click()
        page.locator("#option-effort").select_option("thorough")
        page.locator("#run-design").click()
        page.locator(".antenna.moving").first.wait_for(timeout=90_000)
        found.append({"devices": devices, "design": True, **drag(page, moves)})
        assert page.locator("#run-design").is_disabled(), "the design ended too early"
        page.locator("#cancel-design").click()
        page.locator("#run-design:enabled").wait_for()
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=300)
    print(json.dumps(measure(parser.parse_args().moves), indent=2))

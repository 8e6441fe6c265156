"""Debian's Chromium, driven by selenium; and axe-core, whose rules the page must keep.

Where one of them is missing the tests are skipped and say so, unless BROWSER_TESTS=required asks
for them (as `.ci/run` does): then they fail.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

REQUIRED, AXE_CORE = "BROWSER_TESTS", "AXE_CORE"
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # a container's root has none
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)


def missing(what: str) -> None:
    """Skip the test, or fail it where browser tests are required."""
    reason = f"{what} (see CONTRIBUTING.md, Tests in a browser)"
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def start_browser() -> webdriver.Chrome:
    """Start Chromium without a window, with its log of messages and requests."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        missing("there is no chromium or no chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = str(browser)
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(str(driver)))


def axe_source() -> str:
    """Return the text of axe-core, which AXE_CORE names; it is no part of this repository."""
    path = Path(os.environ.get(AXE_CORE) or "axe-core is not named")
    if not path.is_file():
        missing(f"{AXE_CORE} names no axe.min.js of the npm package axe-core")
    return path.read_text(encoding="utf-8")


class Tab:
    """A page in the browser, at a width and in a colour scheme."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self.browser = browser

    def open(self, path: Path, *, width: int = 1280, dark: bool = False, media: str = "") -> None:
        """Open a file from the disk, as a double click does."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.command("Emulation.setEmulatedMedia", media=media, features=[scheme, still])
        self.drain("browser")
        self.drain("performance")
        self.browser.get(path.resolve().as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns; the page's own policy does not bind it."""
        return self.browser.execute_script(script, *arguments)

    def unfold(self) -> None:
        """Open everything that is folded."""
        self.run("document.querySelectorAll('details').forEach(each => each.open = true)")

    def command(self, name: str, **arguments: Any) -> Any:
        """Give a command of the browser's own protocol."""
        return self.browser.execute_cdp_cmd(name, arguments)

    def drain(self, log: str) -> list[dict[str, Any]]:
        """Return what a log has gathered since it was last asked."""
        return list(self.browser.get_log(log))

    def requests(self) -> list[str]:
        """Return the address of every request that the page made, itself the first."""
        messages = [json.loads(entry["message"])["message"] for entry in self.drain("performance")]
        sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    def axe(self, source: str) -> list[str]:
        """Return what axe-core finds wrong: rule, what it wants, and where."""
        self.run(source)
        found = self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']})"
            ".then(answer => done(answer.violations), problem => done([{id: String(problem)}]));"
        )
        places = [[node["target"] for node in rule.get("nodes", [])][:3] for rule in found]
        return [
            f"{rule['id']}: {rule.get('help')} at {place}"
            for rule, place in zip(found, places, strict=True)
        ]

    def picture(self, *, height: int) -> bytes:
        """Return the top of the page as a PNG, as wide as the window."""
        width = self.run("return document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        answer = self.command(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        return base64.b64decode(answer["data"])

"""One browser for all tests here, and one report of every command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gradflow.present.report import build_report, report_files
from gradflow.records.report import LeftOut
from tests.browser.chromium import Tab, axe_source, start_browser
from tests.present.report.stored import EVIL, evil_run, whole_report


@pytest.fixture(scope="session")
def tab() -> Iterator[Tab]:
    """A tab of a running browser."""
    browser = start_browser()
    try:
        yield Tab(browser)
    finally:
        browser.quit()


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core."""
    return axe_source()


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of every command, alone in its folder: nothing beside it is there to be loaded."""
    path = tmp_path_factory.mktemp("mailed") / "report.html"
    path.write_bytes(report_files(whole_report())["report.html"])
    return path


@pytest.fixture(scope="session")
def evil_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of names that try to break out."""
    path = tmp_path_factory.mktemp("evil") / "report.html"
    report = build_report([evil_run()], [LeftOut(EVIL, EVIL)], title=EVIL, formats=())
    path.write_bytes(report_files(report)["report.html"])
    return path

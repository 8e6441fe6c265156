"""The report's page in a real browser, opened from the disk."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from gradflow.present.report.embed import svg_uri
from gradflow.present.report.small_svg import small_svg
from tests.browser.chromium import Tab
from tests.present.report.stored import whole_report

PHONE, DESKTOP = 360, 1280


def test_it_opens_without_a_complaint(tab: Tab, page: Path) -> None:
    """No error and no warning in the console, and the page is there."""
    tab.open(page)
    assert [entry["message"] for entry in tab.drain("browser")] == []
    assert tab.run("return document.title") == "Gradient flow in recurrent networks"
    assert tab.run("return document.readyState") == "complete"


def test_no_request_leaves_the_page(tab: Tab, page: Path) -> None:
    """Itself and what it carries: nothing else is asked for, whatever is unfolded."""
    tab.open(page)
    tab.unfold()
    requests = tab.requests()
    assert requests[0] == page.resolve().as_uri()
    assert {address.partition(":")[0] for address in requests[1:]} == {"data"}
    loaded = tab.run("return performance.getEntriesByType('resource').map(each => each.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []


def test_its_own_policy_stops_what_would_be_loaded(tab: Tab, page: Path) -> None:
    """Even a script that got in could send nothing."""
    tab.open(page)
    sent = tab.browser.execute_async_script(
        "const done = arguments[0]; const image = new Image();"
        "image.onload = () => done('loaded'); image.onerror = () => done('refused');"
        "image.src = 'http://127.0.0.1:9/pixel.png';"
    )
    assert sent == "refused"
    messages = " ".join(entry["message"] for entry in tab.drain("browser"))
    assert "Content Security Policy" in messages


def test_every_image_is_drawn_and_told(tab: Tab, page: Path) -> None:
    """A natural size in the shape that was announced, and alt text."""
    tab.open(page)
    images = tab.run(
        "return [...document.images].map(each => [each.complete, each.naturalWidth,"
        "each.naturalHeight, each.clientWidth / each.clientHeight, each.alt])"
    )
    assert len(images) == sum(len(entry.figures) for entry in whole_report().entries)
    for complete, width, height, shape, alt in images:
        assert complete
        assert min(width, height) > 100
        assert shape == pytest.approx(width / height, rel=0.02)
        assert len(alt) > 40


def test_links_of_the_contents_lead_to_their_section(tab: Tab, page: Path) -> None:
    """Each goes where it says, and the heading there is seen."""
    tab.open(page)
    links = tab.browser.find_elements(By.CSS_SELECTOR, ".contents a, .answers a")
    assert len(links) > 20
    for link in links:
        target = (link.get_attribute("href") or "").partition("#")[2]
        tab.run("arguments[0].click()", link)
        assert tab.run("return location.hash") == f"#{target}"
        top, seen = tab.run(
            "const box = document.getElementById(arguments[0]).getBoundingClientRect();"
            "const end = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;"
            "return [box.top, end || box.top < innerHeight / 2]",
            target,
        )
        assert seen, (target, top)


@pytest.mark.parametrize("dark", [False, True])
def test_it_follows_the_colour_scheme(tab: Tab, page: Path, dark: bool) -> None:
    """Light on dark or dark on light, with a contrast of 7 and more; figures stay on white."""
    tab.open(page, dark=dark)
    style = "return getComputedStyle(document.body)."
    paper, ink = (
        _luminance(tab.run(style + "backgroundColor")),
        _luminance(tab.run(style + "color")),
    )
    assert (paper < ink) is dark
    assert (max(paper, ink) + 0.05) / (min(paper, ink) + 0.05) > 7
    plate = tab.run("return getComputedStyle(document.querySelector('.plate')).backgroundColor")
    assert _luminance(plate) > 0.8


@pytest.mark.parametrize("width", [320, PHONE, 768, DESKTOP])
def test_it_never_scrolls_sideways(tab: Tab, page: Path, width: int) -> None:
    """Unfolded too: what is wide scrolls in a frame of its own."""
    tab.open(page, width=width)
    for _ in range(2):
        assert tab.run("return document.documentElement.scrollWidth") <= width
        beyond = tab.run(
            "return [...document.querySelectorAll('body *')].filter(each => !each.closest('.wide') "
            "&& !each.closest('.skip') && each.getBoundingClientRect().right > innerWidth + 1)"
            ".map(each => each.tagName + ' ' + each.textContent.slice(0, 40))"
        )
        assert beyond == []
        tab.unfold()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_axe_finds_nothing(tab: Tab, page: Path, axe: str, width: int, dark: bool) -> None:
    """Names, roles, contrast, order, regions, tables: every rule of axe-core."""
    tab.open(page, width=width, dark=dark)
    tab.unfold()
    assert tab.axe(axe) == []


def test_axe_finds_what_is_wrong(tab: Tab, page: Path, axe: str) -> None:
    """A rule that never fails would prove nothing: an image without alt text is found."""
    tab.open(page)
    tab.run("document.images[0].removeAttribute('alt')")
    assert any(line.startswith("image-alt") for line in tab.axe(axe))


def test_the_keyboard_reaches_everything(tab: Tab, page: Path) -> None:
    """The first tab skips to the verdict; a fold opens with Enter; a wide table scrolls."""
    tab.open(page, width=PHONE)
    _press(tab, Keys.TAB)
    assert tab.run("return document.activeElement.className") == "skip"
    assert tab.run("return document.activeElement.getBoundingClientRect().left") >= 0
    _press(tab, Keys.ENTER)
    assert tab.run("return location.hash") == "#verdict"
    fold = "document.querySelector('details')"
    tab.run(f"{fold}.querySelector('summary').focus()")
    _press(tab, Keys.ENTER)
    assert tab.run(f"return {fold}.open")
    _press(tab, Keys.TAB)
    assert tab.run(f"return document.activeElement === {fold}.querySelector('.wide')")
    _press(tab, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    tab.browser.implicitly_wait(0)
    moved = tab.browser.execute_async_script(
        "const done = arguments[0]; let left = 40;"
        "const look = () => document.activeElement.scrollLeft > 0 || --left < 0"
        " ? done(document.activeElement.scrollLeft) : setTimeout(look, 25); look()"
    )
    assert moved > 0


def test_what_has_the_focus_is_seen(tab: Tab, page: Path) -> None:
    """An outline of 3 pixels, in a colour that stands off the page."""
    tab.open(page)
    _press(tab, Keys.TAB, Keys.TAB)
    look = tab.run(
        "const style = getComputedStyle(document.activeElement);"
        "return [style.outlineStyle, parseFloat(style.outlineWidth)]"
    )
    assert look == ["solid", 3]


def test_paper_has_what_is_folded(tab: Tab, page: Path) -> None:
    """On paper nothing can be opened: tables and settings are there, no frame cuts them."""
    tab.open(page, width=794, media="print", dark=True)
    heights, cut = tab.run(
        "return [[...document.querySelectorAll('details table')].map(each => each.offsetHeight),"
        "[...document.querySelectorAll('.wide')].filter("
        "each => getComputedStyle(each).overflowX !== 'visible').length]"
    )
    assert len(heights) > 20
    assert min(heights) > 20
    assert cut == 0
    assert _luminance(tab.run("return getComputedStyle(document.body).backgroundColor")) == 1.0
    pdf = tab.command("Page.printToPDF", preferCSSPageSize=True)
    assert base64.b64decode(pdf["data"]).startswith(b"%PDF")


def test_names_that_try_to_break_out_do_nothing(tab: Tab, evil_page: Path) -> None:
    """A model named <script> is a name: no script, no alert, no complaint."""
    tab.open(evil_page)
    assert [entry["message"] for entry in tab.drain("browser")] == []
    assert tab.run("return document.scripts.length") == 0
    assert "<script>" in tab.run("return document.querySelector('h1').textContent")
    assert tab.run("return document.documentElement.scrollWidth <= innerWidth")


def test_a_small_drawing_looks_like_the_whole_one(tab: Tab, tmp_path: Path) -> None:
    """Pixel by pixel: no shape is lost, moved or painted otherwise."""
    figures = [figure for entry in whole_report().entries for figure in entry.figures]
    for number, figure in enumerate(figures):
        width, height = figure.width, figure.height
        pictures = []
        for svg in (figure.svg, small_svg(figure.svg)):
            path = tmp_path / f"{number}.html"
            body = f'<body style="margin:0"><img src="{svg_uri(svg)}" width={width}>'
            path.write_text(f"<!DOCTYPE html><title>x</title>{body}", encoding="utf-8")
            tab.open(path, width=width)
            data = tab.picture(height=height)
            pictures.append(np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=float))
        whole, small = pictures
        assert whole.std() > 5  # something is drawn
        assert np.abs(whole - small).mean() < 0.3, figure.name
        assert (np.abs(whole - small).max(axis=2) > 100).mean() < 1e-3, figure.name


def _press(tab: Tab, *keys: str) -> None:
    ActionChains(tab.browser).send_keys(*keys).perform()


def _luminance(color: str) -> float:
    """Return the relative luminance of a colour such as rgb(20, 23, 28), as WCAG 2 defines it."""
    channels = [float(part) / 255 for part in color.partition("(")[2].rstrip(")").split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

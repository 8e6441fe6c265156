"""Results show themselves in a notebook."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

from gradflow.present.notebook import result_html
from gradflow.records import Check, Result
from tests.present.decays import bare_curve, decay_of, held_curve, zero_curve


class Page(HTMLParser):
    """Which tags a page opens and closes, in order, and the attributes of its images."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "img":
            self.images.append(dict(attrs))
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_result_draws_itself():
    """The figure is inside the page, has alt text, and the table follows."""
    page = Page(decay_of(held_curve(0.5))._repr_html_() or "")
    (image,) = page.images
    assert (image["alt"] or "").startswith("Line chart of ||dc_T/dc_0||_2")
    kind, _, data = (image["src"] or "").partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert b"<svg" in base64.b64decode(data)
    assert "table" in page.tags
    assert page.open == []


def test_the_page_needs_no_network_and_no_script():
    """Everything is in it."""
    page = result_html(decay_of(held_curve(0.5)))
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!data:)', page)


def test_names_and_notes_of_a_user_are_escaped():
    """A cell called <script> and a note with markup are text."""
    curve = bare_curve("<script>alert(1)</script>")
    result = replace(
        decay_of(curve, notes=['<img src="x">']),
        checks=(Check("<b>bold</b>", False, "a < b & c"),),
    )
    page = result_html(result)
    assert {"script", "b"} & Page(page).tags == set()
    assert len(Page(page).images) == 1
    assert "&lt;b&gt;bold&lt;/b&gt; (a &lt; b &amp; c)" in page
    assert "<strong>failed</strong>" in page


def test_an_exact_zero_is_explained():
    """The note of the result stands under its table."""
    page = result_html(decay_of(zero_curve(0.5), notes=["exactly 0: no weight carries h_0."]))
    assert "exactly 0: no weight carries h_0." in page


def test_a_result_without_a_presenter_shows_its_checks():
    """A kind of result that nobody draws yet still says whether it passed."""
    page = result_html(Result(checks=(Check("finite", True, "all of it"),)))
    assert "passed: finite (all of it)" in page


def test_records_learn_to_draw_only_when_they_are_shown():
    """Making a result loads no matplotlib; showing it does, and still no torch."""
    program = (
        "import sys; from tests.present.decays import decay_of, held_curve;"
        "result = decay_of(held_curve(0.5)); print('matplotlib' in sys.modules);"
        "print('<img' in result._repr_html_(), 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "True", "False"]

"""The page: one file that a browser, a screen reader and a printer can use, whatever is in it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gradflow.present.report import build_report
from gradflow.present.report.markdown import page_markdown
from gradflow.present.report.page import LARGEST, page_html
from gradflow.present.tables import Column, TextTable
from gradflow.records.report import LeftOut
from tests.present.every_figure import COMMANDS
from tests.present.report.stored import (
    EVIL,
    Page,
    decay_run,
    every_run,
    evil_run,
    whole_page,
    whole_report,
)


@pytest.fixture(scope="module")
def page() -> Page:
    """The page of every command, read."""
    return Page(whole_page())


def test_the_page_is_well_formed(page: Page) -> None:
    """Every tag closes; one title, one main heading, a language."""
    assert page.unclosed == []
    assert len(page.all("h1")) == len(page.all("title")) == len(page.all("main")) == 1
    assert page.all("html")[0].attributes["lang"] == "en"


def test_every_id_is_its_own_and_every_link_leads_to_one(page: Page) -> None:
    """Contents and verdict link to places of this page, and to nothing else."""
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids)) > 20
    links = [element.attributes["href"] for element in page.all("a")]
    assert len(links) > len(COMMANDS)
    assert {link.removeprefix("#") for link in links} <= set(ids)
    named = [element.attributes.get("aria-labelledby") for element in page.elements]
    assert {name for name in named if name} <= set(ids)


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    """No script, no style sheet, no font, no address; the page's own policy forbids them."""
    assert page.all("script") == page.all("link") == page.all("iframe") == []
    sources = [element.attributes.get("src", "") for element in page.elements]
    assert {source.partition(":")[0] for source in sources if source} == {"data"}
    assert "url(" not in whole_page().partition("</style>")[0]
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy.attributes["content"].startswith("default-src 'none'")
    handlers = [
        name for element in page.elements for name in element.attributes if name[:2] == "on"
    ]
    assert handlers == []


def test_every_figure_has_its_size_and_says_its_finding(page: Page) -> None:
    """Each drawing has alt text with the numbers, a number of its own and a caption."""
    images = page.all("img")
    figures = [figure for entry in whole_report().entries for figure in entry.figures]
    assert len(images) == len(figures) > len(COMMANDS)
    for image, figure in zip(images, figures, strict=True):
        assert image.attributes["alt"] == figure.alt
        assert len(figure.alt) > 40
        assert int(image.attributes["width"]) > 300
        assert int(image.attributes["height"]) > 100
    captions = [caption.text for caption in page.all("figcaption")]
    expected = [f"Figure {number + 1}." for number in range(len(figures))]
    assert [
        caption.partition(" ")[0] + " " + caption.split()[1] for caption in captions
    ] == expected


def test_every_figure_has_words_of_its_own() -> None:
    """A caption is a sentence, not the name of the figure."""
    for entry in whole_report().entries:
        for figure in entry.figures:
            assert figure.caption.endswith("."), (entry.anchor, figure.name)


def test_every_section_has_its_parts() -> None:
    """Question, formula, figure, table, what it shows and not, settings, how to reproduce."""
    text = whole_page()
    for section in whole_report().sections:
        start = text.index(f'<section id="{section.anchor}"')
        part = Page(text[start : text.index("</section>", start) + len("</section>")])
        headings = [heading.text for heading in part.all("h2") + part.all("h3")]
        assert headings[0] == section.question.title
        assert {"What it shows", "What it does not show"} <= set(headings)
        assert part.all("span", role="math")
        assert len(part.all("img")) == sum(len(entry.figures) for entry in section.entries)
        summaries = [summary.text for summary in part.all("summary")]
        assert "Data table" in summaries
        assert "Settings and provenance" in summaries
        lines = [code.text for pre in part.all("pre") for code in pre.children]
        assert lines == [entry.reproduce for entry in section.entries]


def test_tables_have_scopes_captions_and_units(page: Page) -> None:
    """A heading knows its column or its row, and a table knows what it is of."""
    tables = page.all("table")
    assert len(tables) > 3 * len(COMMANDS)
    assert all(table.children[0].tag == "caption" for table in tables)
    assert {head.attributes.get("scope") for head in page.all("th")} == {"col", "row"}
    assert "nats per step" in page.all("table")[0].children[0].text


def test_tables_and_settings_are_folded_and_failed_checks_are_not() -> None:
    """Long things open when they are asked for; what is wrong is seen."""
    assert all("open" not in element.attributes for element in Page(whole_page()).all("details"))
    evil = Page(page_html(build_report([evil_run()], formats=())))
    opened = [d.children[0].text for d in evil.all("details") if "open" in d.attributes]
    assert opened == ["Checks: 0 of 1 passed"]


def test_a_text_of_the_user_stays_a_text() -> None:
    """A model named <script>, a folder, a note, a setting: none of them becomes markup."""
    report = build_report([evil_run()], [LeftOut(EVIL, EVIL)], title=EVIL, formats=())
    text = page_html(report)
    page = Page(text)
    assert page.all("script") == []
    assert page.unclosed == []
    assert "<script" not in text
    assert page.all("h1")[0].text == EVIL
    assert EVIL in page.all("section", id="left-out")[0].text
    shown = page.all("main")[0].text
    assert shown.count('<script>alert("x")</script>') > 5
    assert "[link](javascript:x)" in page.all("img")[0].attributes["alt"]


def test_a_text_of_the_user_stays_a_text_in_markdown() -> None:
    """GitHub shows the letters as they are, and no cell of a table ends early."""
    report = build_report([evil_run()], [LeftOut(EVIL, EVIL)], title=EVIL, formats=("svg",))
    text = page_markdown(report)
    outside = re.sub(r"``.*?``", "", text)  # in a code span every letter is itself
    assert not re.search(r"(?<!\\)<script", outside)
    assert not re.search(r"(?<!\\)\[link", outside)
    rows = [line for line in outside.splitlines() if line.startswith("| ")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in rows}
    assert widths <= {3, 10}


def test_the_verdict_stands_first_and_tells_every_result(page: Page) -> None:
    """How many checks passed, then a sentence for each result, with a link to it."""
    (header,) = page.all("header")
    assert header.attributes["id"] == "verdict"
    assert whole_report().verdict in header.text
    told = re.sub(r"\s", "", header.text)
    for entry in whole_report().entries:  # a power is a superscript there
        assert re.sub(r"[\s^]", "", entry.finding) in told
    assert "runs/gone" in header.text
    first = min(page.elements.index(header), page.elements.index(page.all("section")[0]))
    assert page.elements[first] is header


def test_a_failed_check_is_told_in_the_verdict() -> None:
    """In a word, not in a colour alone."""
    (header,) = Page(page_html(build_report([evil_run()], formats=()))).all("header")
    assert "1 of 1 checks failed" in header.text
    assert "\u2717 failed" in header.text


def test_the_page_stays_below_its_limit() -> None:
    """Of many results drawings become images and then words; two megabytes are never reached."""
    whole = len(whole_page().encode())
    assert whole <= LARGEST < 2_000_000
    text_alone = len(page_html(whole_report(), largest=0).encode())
    for share, kinds in ((0.9, ("svg+xml", "png")), (0.3, ("png",))):
        largest = text_alone + int(share * (whole - text_alone))
        text = page_html(whole_report(), largest=largest)
        assert len(text.encode()) <= largest
        assert all(f"data:image/{kind}" in text for kind in kinds)
    assert "too large to be carried in the page" in page_html(whole_report(), largest=0)


def test_a_long_table_ends_with_a_word_on_the_rest() -> None:
    """The CSV has every row; the page need not."""
    report = build_report([decay_run()], formats=())
    table = TextTable("Long", (Column("row"),), (tuple((str(i),) for i in range(500)),))
    (section,) = report.sections
    entry = replace(section.entries[0], table=table)
    long = replace(report, sections=(replace(section, entries=(entry,)),))
    page = Page(page_html(long))
    assert len(page.all("tbody")[0].children) == 120
    assert "380 more rows are in the CSV file" in page.all("main")[0].text


def test_the_same_results_make_the_same_page() -> None:
    """No date and no random name: two reports can be compared."""
    pages = [page_html(build_report([decay_run()], formats=())) for _ in range(2)]
    assert pages[0] == pages[1]


def test_what_a_finding_warns_of_is_no_success() -> None:
    """A tick stands above results without warnings alone, and above something that was checked."""
    (watched,) = (run for run in every_run() if run.result.command == "watch")
    warned = build_report([watched], formats=())
    assert (warned.tone, warned.grave) == ("warned", len(warned.entries[0].grave))
    assert warned.grave > 0
    (header,) = Page(page_html(warned)).all("header")
    assert re.search(r"\d+ findings? warns? in 1 result\.", header.text.replace("\n", " "))
    assert "\u2713" not in header.text
    checked = build_report([watched, decay_run()], formats=())
    assert checked.tone == "warned"
    assert re.search(r"checks? passed in 2 results; \d+ findings? warns?\.", checked.verdict)
    quiet = replace(watched, result=replace(watched.result, findings=()))
    plain = build_report([quiet], formats=())
    assert (plain.tone, plain.verdict) == ("plain", "There was nothing to check in 1 result.")
    assert build_report([decay_run()], formats=()).tone == "good"

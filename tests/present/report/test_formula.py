"""Formulas say the same in TeX, on the page and aloud."""

from __future__ import annotations

from gradflow.present.report.formula import frac, norm, row
from gradflow.present.report.questions import QUESTIONS
from tests.present.report.stored import Page

EVERY = [
    formula
    for question in QUESTIONS.values()
    for statement in question.statements
    for formula in statement.formulas
]


def test_an_index_and_a_power_are_below_and_above() -> None:
    """c_T and f^T, in each language."""
    formula = row("c_T = f^T c_0")
    assert formula.tex == "c_{T} = f^{T} c_{0}"
    assert formula.html.startswith("<i>c</i><sub><i>T</i></sub>\u2005=\u2005<i>f</i><sup>")
    assert formula.label == "c_T = f^T c_0"


def test_factors_stand_close_and_operators_free() -> None:
    """A thin space between factors, a wider one around operators, none inside brackets."""
    assert row("i o U").html == "<i>i</i>\u2009<i>o</i>\u2009<i>U</i>"
    assert row("rho ( f + i )").html == ("<i>\u03c1</i>(<i>f</i>\u2005+\u2005<i>i</i>)")
    assert row("= neg", frac("1", "T")).html.startswith("=\u2005\u2212\u2060<span")


def test_fractions_and_norms_nest() -> None:
    """Each keeps its inside whole, and reads aloud with brackets."""
    formula = norm(frac("partial L", "partial h_t"))
    assert formula.tex == r"\left\| \frac{\partial L}{\partial h_{t}} \right\|"
    assert formula.label == "norm of ((\u2202 L) / (\u2202 h_t))"


def test_every_formula_of_every_question_is_whole() -> None:
    """Tags close, braces close, and whoever listens is told the formula."""
    assert len(EVERY) >= len(QUESTIONS)
    for formula in EVERY:
        page = Page(formula.markup)
        assert page.unclosed == []
        assert page.all("span", role="math")[0].attributes["aria-label"] == formula.label
        assert formula.tex.count("{") == formula.tex.count("}")
        assert "_" not in formula.html

"""Formulas of a report, written once: TeX for Markdown, HTML for the page, words for a listener.

The HTML is letters with `<sub>` and `<sup>`: MathML looks right only where a font for mathematics
is installed, and a page that is mailed cannot know.

A formula is put together from parts; a text among them is read as tokens between blanks:

    "c_T"  c with the index T        "f^T"  f to the power T        "lambda"  the Greek letter
    "ln"   an upright name           "="    an operator
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

_GREEK = {"lambda": "\u03bb", "rho": "\u03c1", "sigma": "\u03c3", "tau": "\u03c4"}
_SIGNS = {
    "partial": ("\u2202", r"\partial"),
    "sum": ("\u2211", r"\sum"),
    "...": ("\u2026", r"\dots"),
    "<=": ("\u2264", r"\le"),
    "-": ("\u2212", "-"),
    "neg": ("\u2212\u2060", "-"),  # a sign, no operation
    "*": ("\u22c5", r"\cdot"),
    "approx": ("\u2248", r"\approx"),
}
_TOKEN = re.compile(r"(?P<base>[^\s_^]+)(?:_(?P<low>[^\s^]+))?(?:\^(?P<high>\S+))?")
_PIECE = re.compile(r"[A-Za-z]+|[0-9.]+|[^\sA-Za-z0-9]")
_THIN, _WIDE = "\u2009", "\u2005"  # between factors, and around operators
_BETWEEN = {"=", "+", "\u2212", "\u22c5", "\u2264", "\u2248"}
_TIGHT_AFTER = {"(", "\u2202", "\u2212\u2060"}


@dataclass(frozen=True)
class Formula:
    """A formula, or a part of one; `label` is what is read aloud."""

    tex: str
    html: str
    label: str

    @property
    def markup(self) -> str:
        """The formula as HTML, in one piece for whoever listens."""
        label = html.escape(self.label, quote=True)
        return f'<span class="math" role="math" aria-label="{label}">{self.html}</span>'


Part = Formula | str


def row(*parts: Part) -> Formula:
    r"""Return the parts side by side.

    >>> row("J_t", "= f^T").tex
    'J_{t} = f^{T}'
    >>> row("x_1").html
    '<i>x</i><sub>1</sub>'
    """
    pieces = [piece for part in parts for piece in _pieces_of(part)]
    return Formula(
        tex=" ".join(piece.tex for piece in pieces),
        html=_spaced([piece.html for piece in pieces]),
        label=" ".join(piece.label for piece in pieces),
    )


def frac(above: Part, below: Part) -> Formula:
    """Return a fraction, with a bar."""
    top, bottom = row(above), row(below)
    return Formula(
        tex=rf"\frac{{{top.tex}}}{{{bottom.tex}}}",
        html=f'<span class="frac"><span>{top.html}</span><span>{bottom.html}</span></span>',
        label=f"({top.label}) / ({bottom.label})",
    )


def norm(inside: Part) -> Formula:
    """Return the norm of a part."""
    part = row(inside)
    return Formula(
        tex=rf"\left\| {part.tex} \right\|",
        html=f"\u2016\u200a{part.html}\u200a\u2016",
        label=f"norm of ({part.label})",
    )


def _pieces_of(part: Part) -> list[Formula]:
    if isinstance(part, Formula):
        return [part]
    return [_token(match) for match in _TOKEN.finditer(part)]


def _spaced(texts: list[str]) -> str:
    """Join tokens as a printer does: operators stand free, factors close, signs tight."""
    whole, before = "", ""
    for text in texts:
        whole += _space(before, text) + text
        before = text
    return whole


def _space(before: str, text: str) -> str:
    if not before or before in _TIGHT_AFTER or text in (")", ","):
        return ""
    if before in _BETWEEN or text in _BETWEEN or before == ",":
        return _WIDE
    return "" if text.startswith("(") else _THIN


def _token(match: re.Match[str]) -> Formula:
    base, low, high = (_joined(match[name] or "") for name in ("base", "low", "high"))
    parts = ((low, "_", "sub"), (high, "^", "sup"))
    tex, text, label = base.tex, base.html, base.label
    for part, sign, tag in parts:
        if part.tex:
            tex += f"{sign}{{{part.tex}}}"
            text += f"<{tag}>{part.html}</{tag}>"
            label += f"{sign}{part.label}"
    return Formula(tex, text, label)


def _joined(text: str) -> Formula:
    if text in _SIGNS:
        sign, tex = _SIGNS[text]
        return Formula(tex, sign, sign)
    pieces = [_piece(piece) for piece in _PIECE.findall(text)]
    return Formula(
        tex=" ".join(piece.tex for piece in pieces),
        html="".join(piece.html for piece in pieces),
        label="".join(piece.label for piece in pieces),
    )


def _piece(text: str) -> Formula:
    if text in _GREEK:
        return Formula(f"\\{text}", f"<i>{_GREEK[text]}</i>", text)
    if text.isalpha() and len(text) > 1:
        return Formula(rf"\operatorname{{{text}}}", text, text)
    if text.isalpha():
        return Formula(text, f"<i>{text}</i>", text)
    sign, tex = _SIGNS.get(text, (text, text))
    return Formula(tex, html.escape(sign), sign)

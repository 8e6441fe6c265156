"""Formulas of a report, written once: TeX for Markdown, MathML for the page (no script needed).

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
    "*": ("\u22c5", r"\cdot"),
    "odot": ("\u2299", r"\odot"),
    "approx": ("\u2248", r"\approx"),
}
_TOKEN = re.compile(r"(?P<base>[^\s_^]+)(?:_(?P<low>[^\s^]+))?(?:\^(?P<high>\S+))?")
_PIECE = re.compile(r"[A-Za-z]+|[0-9.]+|[^\sA-Za-z0-9]")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Formula:
    """A formula, or a part of one, in both languages."""

    tex: str
    mathml: str

    @property
    def markup(self) -> str:
        """The whole `<math>` element, set on a line of its own."""
        return f'<math display="block">{self.mathml}</math>'


Part = Formula | str


def row(*parts: Part) -> Formula:
    r"""Return the parts side by side.

    >>> row("J_t", "= f^T").tex
    'J_{t} = f^{T}'
    >>> row("x").mathml
    '<mi>x</mi>'
    """
    read = [part if isinstance(part, Formula) else _read(part) for part in parts]
    whole = "".join(part.mathml for part in read)
    return Formula(" ".join(part.tex for part in read), whole)


def frac(above: Part, below: Part) -> Formula:
    """Return a fraction."""
    top, bottom = row(above), row(below)
    tex = rf"\frac{{{top.tex}}}{{{bottom.tex}}}"
    return Formula(tex, f"<mfrac>{_grouped(top)}{_grouped(bottom)}</mfrac>")


def norm(inside: Part, index: str = "") -> Formula:
    """Return the norm of a part, with an index where one is named."""
    part, low = row(inside), row(index)
    bars = f'<mo stretchy="true">\u2016</mo>{part.mathml}<mo stretchy="true">\u2016</mo>'
    tex = rf"\left\| {part.tex} \right\|"
    if not index:
        return Formula(tex, f"<mrow>{bars}</mrow>")
    markup = f"<msub><mrow>{bars}</mrow>{_grouped(low)}</msub>"
    return Formula(f"{tex}_{{{low.tex}}}", markup)


def power(base: Part, exponent: Part) -> Formula:
    """Return a part to the power of another."""
    low, high = row(base), row(exponent)
    tex = f"{{{low.tex}}}^{{{high.tex}}}"
    return Formula(tex, f"<msup>{_grouped(low)}{_grouped(high)}</msup>")


def words(text: str) -> Formula:
    """Return plain words between symbols."""
    spaced = f"\u00a0{html.escape(text)}\u00a0"
    return Formula(rf"\text{{ {text} }}", f"<mtext>{spaced}</mtext>")


def _grouped(part: Formula) -> str:
    return f"<mrow>{part.mathml}</mrow>"


def _read(text: str) -> Formula:
    tokens = [_token(match) for match in _TOKEN.finditer(text)]
    mathml = "".join(token.mathml for token in tokens)
    return Formula(" ".join(token.tex for token in tokens), mathml)


def _token(match: re.Match[str]) -> Formula:
    base, low, high = (_pieces(match[name] or "") for name in ("base", "low", "high"))
    tex = base.tex
    tex += f"_{{{low.tex}}}" if match["low"] else ""
    tex += f"^{{{high.tex}}}" if match["high"] else ""
    if not (match["low"] or match["high"]):
        return Formula(tex, base.mathml)
    kind = "msubsup" if match["low"] and match["high"] else "msub" if match["low"] else "msup"
    inner = [_grouped(part) for part in (base, low, high) if part.tex]
    return Formula(tex, f"<{kind}>{''.join(inner)}</{kind}>")


def _pieces(text: str) -> Formula:
    if text in _SIGNS:
        sign, tex = _SIGNS[text]
        return Formula(tex, f"<mo>{sign}</mo>")
    pieces = [_piece(piece) for piece in _PIECE.findall(text)]
    mathml = "".join(piece.mathml for piece in pieces)
    return Formula(" ".join(piece.tex for piece in pieces), mathml)


def _piece(text: str) -> Formula:
    if text in _GREEK:
        return Formula(f"\\{text}", f"<mi>{_GREEK[text]}</mi>")
    if _NUMBER.fullmatch(text):
        return Formula(text, f"<mn>{text}</mn>")
    if text.isalpha():
        tex = text if len(text) == 1 else rf"\operatorname{{{text}}}"
        return Formula(tex, f"<mi>{text}</mi>")
    sign, tex = _SIGNS.get(text, (text, text))
    stretch = ' stretchy="false"' if sign in "()[]|" else ""
    return Formula(tex, f"<mo{stretch}>{html.escape(sign)}</mo>")

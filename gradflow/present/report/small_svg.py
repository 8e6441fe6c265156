"""A figure's SVG, made small enough to be carried inside a page.

matplotlib writes six decimals, long names and white space. A hundredth of a point cannot be seen,
and a name matters only where something refers to it. What is drawn stays the same.
"""

from __future__ import annotations

import re
from itertools import count, product
from string import ascii_lowercase

_LONG = re.compile(r"-?\d+\.\d{3,}(?![\de])")
_REFERENCE = re.compile(r'(?:href="|url\()#([^")]+)')
_ID = re.compile(r' id="([^"]+)"')
_METADATA = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
_PATH = re.compile(r' d="([^"]*)"')


def small_svg(svg: bytes) -> bytes:
    """Return the same drawing in about two thirds of the bytes."""
    text = svg.decode("utf-8")
    text = text[text.index("<svg") :]
    text = _METADATA.sub("", text)
    text = _with_short_names(text)
    text = _LONG.sub(_shortened, text)
    text = _PATH.sub(_packed, text)
    text = re.sub(r"\s+", " ", text)
    for long, short in (("> <", "><"), ('" /', '"/'), (": ", ":"), ("; ", ";")):
        text = text.replace(long, short)
    return text.encode("utf-8")


def _with_short_names(text: str) -> str:
    used = dict.fromkeys(_REFERENCE.findall(text))
    short = dict(zip(used, _names(), strict=False))
    text = _ID.sub(lambda m: f' id="{short[m[1]]}"' if m[1] in short else "", text)
    text = re.sub(r'(?:xlink:)?href="#([^"]+)"', lambda m: f'href="#{short[m[1]]}"', text)
    return re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{short[m[1]]})", text)


def _names() -> map[str]:
    """Return a, b, ..., z, aa, ab, ... without end."""
    letters = (product(ascii_lowercase, repeat=length) for length in count(1))
    return map("".join, (name for names in letters for name in names))


def _shortened(match: re.Match[str]) -> str:
    """Return a number to a hundredth, a small one (a scale) to five digits."""
    value = float(match[0])
    text = f"{value:.2f}" if abs(value) >= 1 else f"{value:.5f}"
    text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _packed(match: re.Match[str]) -> str:
    data = re.sub(r"\s*([A-Za-z])\s*", r"\1", match[1])
    return f' d="{data.strip()}"'

"""A figure's SVG, made small enough to be carried inside a page.

matplotlib writes six decimals, long names, a style beside every stroke and a group around it. A
hundredth of a point cannot be seen, a name matters only where something refers to it, and a style
needs to be said once. What is drawn stays the same.
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
_STYLE = re.compile(r' style="([^"]*)"')
_GROUP = re.compile(r"<g( [^>]*)?/>|<g( [^>]*)?>|</g>")
_LETTER = re.compile(r'(<use [^>]*)transform="translate\(([-\d.]+)(?: 0)?\)"')


def small_svg(svg: bytes) -> bytes:
    """Return the same drawing in about half of the bytes.

    Args:
        svg: a file that matplotlib wrote; no other SVG is meant.
    """
    text = svg.decode("utf-8")
    text = _METADATA.sub("", text[text.index("<svg") :])
    text = _with_short_names(text)
    text = _LONG.sub(_shortened, text)
    text = _PATH.sub(_packed, text)
    text = _with_classes(text)
    text = re.sub(r"\s+", " ", text)
    for long, short in (("> <", "><"), ('" /', '"/'), (": ", ":"), ("; ", ";")):
        text = text.replace(long, short)
    text = _LETTER.sub(_placed, text)
    return _without_bare_groups(text).encode("utf-8")


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
    return _trimmed(f"{value:.2f}") if abs(value) >= 1 else f"{value:.5g}"


def _trimmed(text: str) -> str:
    text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _packed(match: re.Match[str]) -> str:
    data = re.sub(r"\s*([A-Za-z])\s*", r"\1", match[1])
    return f' d="{data.strip()}"'


def _with_classes(text: str) -> str:
    """Say each style once, in the style sheet that every matplotlib file begins with."""
    styles: dict[str, str] = {}
    names = _names()

    def named(match: re.Match[str]) -> str:
        style = match[1].strip().rstrip(";")
        if style not in styles:
            styles[style] = next(names)
        return f' class="{styles[style]}"'

    text = _STYLE.sub(named, text)
    rules = "".join(f".{name}{{{style}}}" for style, name in styles.items())
    return text.replace("</style>", f"{rules}</style>", 1)


def _placed(match: re.Match[str]) -> str:
    """Return a letter placed by x; in its units, hundreds to the letter, a tenth is nothing."""
    return f'{match[1]}x="{_trimmed(f"{float(match[2]):.1f}")}"'


def _without_bare_groups(text: str) -> str:
    """Remove groups that say nothing of what is in them, and those with nothing in them."""
    kept: list[bool] = []

    def tag(match: re.Match[str]) -> str:
        if match[0].endswith("/>"):
            return ""
        if match[0] == "</g>":
            return match[0] if kept.pop() else ""
        kept.append(bool((match[2] or "").strip()))
        return match[0] if kept[-1] else ""

    return _GROUP.sub(tag, text)

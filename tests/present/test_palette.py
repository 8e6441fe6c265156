"""One look for each gate value."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import color_sequences
from matplotlib.colors import to_hex, to_rgb

from gradflow.present.palette import gate_color, gate_look

TENTHS = tuple(tenth / 10 for tenth in range(1, 10))
OFTEN_TOGETHER = (
    (0.1, 0.5, 0.9),
    TENTHS,
    (0.5, 0.9, 0.95, 0.99, 0.999),
    (0.01, 0.05, 0.1, 0.5, 0.9, 0.95, 0.99),
    (0.5, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0),
)


def lightness(color: str) -> float:
    """Return how light a colour is on a grey print, 0 to 1 (Rec. 709 luma)."""
    red, green, blue = to_rgb(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_default_gates_have_the_first_hues_of_petroff10():
    """Blue, orange and red: far apart for a colour-blind reader."""
    hues = [to_hex(color) for color in color_sequences["petroff10"][:3]]
    assert [gate_color(value) for value in (0.1, 0.5, 0.9)] == hues


def test_the_default_gates_differ_on_a_grey_print():
    """Their lightness is at least 0.15 apart, so the lines differ without colour."""
    greys = sorted(lightness(gate_color(value)) for value in (0.1, 0.5, 0.9))
    assert all(darker + 0.15 < lighter for darker, lighter in pairwise(greys))


@pytest.mark.parametrize("values", OFTEN_TOGETHER)
def test_values_that_are_asked_for_together_differ_in_colour_and_marker(values: tuple[float, ...]):
    """No two lines of one panel look alike."""
    looks = [gate_look(value) for value in values]
    for one, other in combinations(looks, 2):
        assert one.color != other.color
        assert (one.marker, one.face) != (other.marker, other.face)


@given(st.floats(0.0, 3.0))
def test_every_value_has_a_look(value: float):
    """Any gate and any recurrent gain, 0 and 1 too, gets a colour and a darker one for edges."""
    look = gate_look(value)
    assert lightness(look.dark) < lightness(look.color)
    assert gate_look(value) == look


def test_rounding_does_not_change_a_look():
    """sigmoid(logit(0.1)) is 0.1 to the eye, and gets the colour of 0.1."""
    assert gate_look(0.1 - 2e-17) == gate_look(0.1 + 1e-16) == gate_look(0.1)


def test_a_value_between_two_anchors_is_a_shade_with_an_open_marker():
    """0.12 looks near to 0.1 and not the same."""
    near, anchor = gate_look(0.12), gate_look(0.1)
    assert near.color != anchor.color
    assert near.marker == anchor.marker
    assert near.face == "white"

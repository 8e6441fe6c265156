"""A user's data for a model, from files and functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from gradflow.checkpoints.batches import load_batch
from gradflow.errors import GradflowError


def test_windows_of_a_series_come_with_the_target_after_them(tmp_path: Path):
    """Columns that hold no number (a date) are left out; the target goes by name or number."""
    path = tmp_path / "series.csv"
    rows = [f"2020-01-{t + 1:02d},{t},{t * t}" for t in range(10)]
    path.write_text("date,step,square\n" + "\n".join(rows))
    for name in ("square", "1"):
        batch = load_batch(str(path), window=3, target=name)
        assert batch["inputs"].shape == (7, 3, 2)
        assert batch["targets"][:, 0].tolist() == [9, 16, 25, 36, 49, 64, 81]
    assert load_batch(str(path), window=10)["inputs"].shape == (1, 10, 2)


def test_arrays_and_tensors_come_by_their_names(tmp_path: Path):
    """.npz, .safetensors, .npy and .pt, with their numbers, whatever they are called."""
    np.savez(tmp_path / "a.npz", inputs=np.ones((2, 3, 4)), targets=np.zeros(2))
    save_file(
        {"inputs": torch.ones(2, 3, 4), "targets": torch.zeros(2)}, tmp_path / "a.safetensors"
    )
    for name in ("a.npz", "a.safetensors"):
        batch = load_batch(str(tmp_path / name))
        assert set(batch) == {"inputs", "targets"}
        assert batch["inputs"].sum().item() == 24.0
    np.save(tmp_path / "a.npy", np.ones((2, 3)))
    assert load_batch(str(tmp_path / "a.npy")).shape == (2, 3)
    torch.save({"x": torch.ones(2, 3, 4), "lengths": torch.tensor([3, 1])}, tmp_path / "a.pt")
    assert load_batch(str(tmp_path / "a.pt"))["lengths"].tolist() == [3, 1]


@pytest.mark.parametrize(
    ("text", "window", "target", "message"),
    [
        ("a,b\n1,2\n3,4\n", None, None, "needs --window"),
        ("a,b\n1,2\n3,4\n", 5, None, "longer than the series"),
        ("a,b\n1,2\n3,4\n", 1, "c", "no column 'c'"),
        ("a,b\n1,2\n3,\n", 1, None, "line 3 has no number in column .b."),
        ("", 1, None, "no line"),
        ("a\n1\nnan\n", 1, None, "finite"),
    ],
)
def test_a_series_that_cannot_be_cut_says_why(
    tmp_path: Path, text: str, window: int | None, target: str | None, message: str
):
    """One message, with the flag or the column."""
    path = tmp_path / "series.csv"
    path.write_text(text)
    with pytest.raises(GradflowError, match=message):
        load_batch(str(path), window=window, target=target)


def test_a_function_that_fails_is_told_with_its_reason(tmp_path: Path):
    """It is the user's code."""
    (tmp_path / "data.py").write_text("def make():\n    raise ValueError('no disk')\n")
    with pytest.raises(GradflowError, match="ValueError: no disk"):
        load_batch(f"{tmp_path / 'data.py'}:make")


NUMBERS = [(1.5 + t, t % 3) for t in range(6)]


def lines(form: str) -> str:
    """The numbers in some form, a line a step."""
    return "".join(form.format(a=a, b=b, comma=str(a).replace(".", ",")) for a, b in NUMBERS)


SPELLINGS = {
    "semicolons and decimal commas": "price;kind\n" + lines("{comma};{b}\n"),
    "tabs": "price\tkind\n" + lines("{a}\t{b}\n"),
    "a mark, and lines of another system": "\ufeffprice,kind\r\n" + lines("{a},{b}\r\n"),
    "quotes": '"price","kind"\n' + lines('"{a}",{b}\n'),
    "a comment, empty lines": "# a, b; c; d\n\nprice,kind\n\n" + lines("{a},{b}\n"),
    "a comma at the end": "price,kind,\n" + lines("{a},{b},\n"),
    "a year for a name": "price,2020\n" + lines("{a},{b}\n"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_series_is_read_as_programs_write_it(tmp_path: Path, spelling: str):
    """Separators, decimal commas, marks and comments: the same numbers."""
    path = tmp_path / "series.csv"
    path.write_text(SPELLINGS[spelling], newline="")
    batch = load_batch(str(path), window=2, target="price")
    assert batch["inputs"][0].tolist() == [[1.5, 0.0], [2.5, 1.0]]
    assert batch["targets"][:, 0].tolist() == [3.5, 4.5, 5.5, 6.5]
    assert batch["notes"] == ()


def test_columns_without_numbers_and_windows_that_are_not_run_are_told(tmp_path: Path):
    """Nothing is left out in silence; two columns of one name need a number."""
    path = tmp_path / "series.csv"
    path.write_text("date,a,a\n" + "".join(f"2020-01-01,{t},{-t}\n" for t in range(100)))
    batch = load_batch(str(path), window=5)
    assert batch["notes"] == (
        "Columns without numbers are left out: date.",
        "64 of the series' 96 windows are run, evenly spaced.",
    )
    assert load_batch(str(path), window=5, target="1")["targets"][0].item() == -5.0
    with pytest.raises(GradflowError, match="several columns 'a'"):
        load_batch(str(path), window=5, target="a")
    path.write_text("1,2\n3,4\n")
    assert load_batch(str(path), window=2)["inputs"].tolist() == [[[1.0, 2.0], [3.0, 4.0]]]

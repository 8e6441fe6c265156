"""Input series from files: what each form is read as, and what is refused."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gradflow.checkpoints.series import load_series
from gradflow.errors import SeriesError

SERIES = np.arange(6.0).reshape(3, 2)


def test_axes_are_time_then_batch_then_input(tmp_path: Path) -> None:
    """(time), (time, input) and (time, batch, input) become (time, batch, input)."""
    for array, shape in (
        (SERIES[:, 0], (3, 1, 1)),
        (SERIES, (3, 1, 2)),
        (SERIES[:, :, None], (3, 2, 1)),
    ):
        np.save(tmp_path / "x.npy", array)
        found = load_series(tmp_path / "x.npy")
        assert found.values.shape == shape
        np.testing.assert_array_equal(found.values.ravel(), array.ravel())


def test_whole_numbers_and_float32_become_float64(tmp_path: Path) -> None:
    """Every real dtype is read without losing a bit."""
    for dtype in ("int8", "uint16", "float32", "bool"):
        np.save(tmp_path / "x.npy", SERIES.astype(dtype))
        assert load_series(tmp_path / "x.npy").values.dtype == np.float64


def test_an_archive_has_one_series(tmp_path: Path) -> None:
    """The only array of an .npz, or the one with a usual name."""
    np.savez(tmp_path / "one.npz", anything=SERIES)
    np.savez(tmp_path / "two.npz", y=SERIES + 1, inputs=SERIES)
    for name in ("one.npz", "two.npz"):
        np.testing.assert_array_equal(load_series(tmp_path / name).values[:, 0], SERIES)
    np.savez(tmp_path / "none.npz", y=SERIES, z=SERIES)
    with pytest.raises(SeriesError, match="2 arrays, and none of them is called x"):
        load_series(tmp_path / "none.npz")


@pytest.mark.parametrize(
    "text", ["0,1\n2,3\n4,5\n", "a,b\n0,1\n2,3\n\n4,5", "\ufeff0,1\r\n2,3\r\n4,5"]
)
def test_a_csv_has_a_line_per_step(tmp_path: Path, text: str) -> None:
    """With or without headings, empty lines, a byte order mark, Windows line ends."""
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8", newline="")
    np.testing.assert_array_equal(load_series(path).values[:, 0], SERIES)


def test_the_file_is_known_by_its_digest(tmp_path: Path) -> None:
    """Two files of the same bytes have one sha256; the name is the file's alone."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1\n2\n")
    one, other = load_series(tmp_path / "a.csv"), load_series(tmp_path / "b.csv")
    assert one.sha256 == other.sha256
    assert one.file == "a.csv"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.csv", "1,2\n3\n", "--input .*line 2 has 1 numbers, the first has 2"),
        ("x.csv", "1,2\n3,x\n", "line 2 is '3,x'.*with commas between"),
        ("x.csv", "1,x\n3,4\n", "line 1 is '1,x'"),
        ("x.csv", "\n1,2\n\n3,x\n", "line 4 is"),
        ("x.csv", "a,b\nm,s\n1,2\n", "line 2 is 'm,s'.*Only the first line"),
        ("x.csv", "1_0,2\n3,4\n", "line 1 is '1_0,2'"),
        ("x.csv", "9" * 200_000, "cannot read.*field larger"),
        ("x.csv", "", "at least one number; got shape"),
        ("x.csv", "a,b\n", "at least one number"),
        ("x.csv", "1\nnan\n", "step 2, row 1, input 1 is nan"),
        ("x.npy", "no array", "cannot read"),
        ("x.npz", "no archive", "never loaded: to load one can run any code"),
        ("x.json", "[1]", "reads .npy, .npz and .csv"),
    ],
)
def test_what_is_no_series_is_one_message(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    """The flag, the file and what is wrong with it; nothing is guessed."""
    (tmp_path / name).write_text(content)
    with pytest.raises(SeriesError, match=words) as caught:
        load_series(tmp_path / name, flag="--input")
    assert "\n" not in str(caught.value)


def test_what_is_no_number_is_refused(tmp_path: Path) -> None:
    """Complex numbers, text and pickled objects are no input; nothing is unpickled."""
    np.save(tmp_path / "x.npy", SERIES.astype(complex))
    with pytest.raises(SeriesError, match="must hold real numbers; got complex128"):
        load_series(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(SeriesError, match="pickled objects are never loaded"):
        load_series(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.zeros((2, 2, 2, 2)))
    with pytest.raises(SeriesError, match=r"got shape \(2, 2, 2, 2\)"):
        load_series(tmp_path / "x.npy")


def test_an_archive_without_a_series_is_refused(tmp_path: Path) -> None:
    """An empty archive, and one of other files: each is told by what it is."""
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(SeriesError, match="holds no array"):
        load_series(tmp_path / "empty.npz")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(SeriesError, match="no NumPy array of numbers"):
        load_series(tmp_path / "other.npz")


def test_any_damage_is_one_message(tmp_path: Path) -> None:
    """A byte that flips anywhere leaves a series of finite numbers, or is refused in words."""
    np.savez_compressed(tmp_path / "whole.npz", x=SERIES)
    np.save(tmp_path / "whole.npy", SERIES)
    refused = 0
    for whole in (tmp_path / "whole.npz", tmp_path / "whole.npy"):
        data = whole.read_bytes()
        for place in range(len(data)):
            damaged = tmp_path / f"damaged{whole.suffix}"
            damaged.write_bytes(data[:place] + bytes([data[place] ^ 0x5A]) + data[place + 1 :])
            try:
                assert np.isfinite(load_series(damaged).values).all()
            except SeriesError as problem:
                refused += "--data" in str(problem)
    assert refused > 100


def test_text_of_another_encoding_is_refused(tmp_path: Path) -> None:
    """UTF-16, as spreadsheets write it, is named as what it is not."""
    (tmp_path / "x.csv").write_text("1,2", encoding="utf-16")
    with pytest.raises(SeriesError, match="no text in UTF-8"):
        load_series(tmp_path / "x.csv")


def test_a_number_beyond_float64_is_refused_without_a_warning(tmp_path: Path) -> None:
    """A long double may be larger than float64 goes: it is named as infinite, and nothing warns."""
    np.save(tmp_path / "x.npy", np.full(3, np.finfo(np.longdouble).max))
    largest = np.finfo(np.longdouble).max > np.finfo(np.float64).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if largest:
            with pytest.raises(SeriesError, match="input 1 is inf"):
                load_series(tmp_path / "x.npy")
        else:  # a platform where both are one
            assert np.isfinite(load_series(tmp_path / "x.npy").values).all()

"""What is no checkpoint is told for what it is, with what to do about it."""

from __future__ import annotations

import contextlib
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from gradflow.checkpoints import load_layers
from gradflow.errors import CheckpointError

STATE = nn.LSTM(3, 4).state_dict()
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 52428800\n"


def tar_archive(path: Path) -> None:
    """Write a real tar archive with a file of weights in it."""
    inner = path.with_name("weights.bin")
    torch.save(STATE, inner)
    with tarfile.open(path, "w") as archive:
        archive.add(inner, inner.name)


def zip_archive(path: Path, *names: str) -> None:
    """Write a zip archive of empty files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")


OTHERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "an empty file": (lambda p: p.write_bytes(b""), r"is empty \(0 bytes\)"),
    "a pointer of Git LFS": (
        lambda p: p.write_bytes(LFS),
        r"Git LFS pointer.* 52428800 bytes.*git lfs pull",
    ),
    "a web page": (lambda p: p.write_bytes(b"\n<!DOCTYPE html><html>404"), "a web page"),
    "JSON": (lambda p: p.write_bytes(b'{"weight_map": {}}'), "JSON text"),
    "text": (lambda p: p.write_bytes(b"loss 0.3\nloss 0.2\n"), "text that begins with 'loss 0.3'"),
    "one array": (lambda p: p.write_bytes(npy()), "one NumPy array without a name"),
    "HDF5": (lambda p: p.write_bytes(b"\x89HDF\r\n\x1a\n"), r"HDF5 file, as Keras.*numpy\.savez"),
    "gzip": (lambda p: p.write_bytes(b"\x1f\x8b\x08\x00"), "compressed by gzip. Unpack it"),
    "GGUF": (lambda p: p.write_bytes(b"GGUF\x03"), "a GGUF file"),
    "noise": (lambda p: p.write_bytes(bytes(range(200, 256))), "first bytes are c8 c9 ca"),
    "a bare pickle": (
        lambda p: p.write_bytes(pickle.dumps({"a": 1})),
        "bare pickle, not torch's format",
    ),
    "a tar archive": (tar_archive, r"a tar archive. Unpack it first \(tar -xf\)"),
    "an archive of weights": (
        lambda p: zip_archive(p, "data", "policy.pth"),
        "archive of 2 files. Unpack it and give the weights in it: policy.pth",
    ),
    "a Keras model": (lambda p: zip_archive(p, "config.json", "model.weights.h5"), "a Keras model"),
    "an archive of pictures": (lambda p: zip_archive(p, "a.png"), "such as a.png, and no file of"),
    "an empty archive": (zip_archive, "an archive of 0 files, and no file of weights"),
}


def npy() -> bytes:
    """Return the bytes of an .npy file."""
    return b"\x93NUMPY" + bytes(10)


@pytest.mark.parametrize("case", OTHERS)
def test_other_files_are_told_for_what_they_are(tmp_path: Path, case: str) -> None:
    """In one message of at most three lines that names the file."""
    write, words = OTHERS[case]
    path = tmp_path / "model.pt"
    write(path)
    with pytest.raises(CheckpointError, match=words) as caught:
        load_layers(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).count("\n") < 3


def test_an_onnx_model_is_told_by_its_ending(tmp_path: Path) -> None:
    """Its bytes have no mark of their own."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x07\x12\x07pytorch")
    with pytest.raises(CheckpointError, match="an ONNX model"):
        load_layers(path)


def test_a_folder_names_the_files_in_it(tmp_path: Path) -> None:
    """Who gives the folder of a model meant a file in it."""
    torch.save(STATE, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"is a folder.*In it: pytorch_model\.bin"):
        load_layers(tmp_path)
    (tmp_path / "__0_0.distcp").touch()
    with pytest.raises(CheckpointError, match="dcp_to_torch"):
        load_layers(tmp_path)


def test_a_missing_file_offers_the_nearest_one(tmp_path: Path) -> None:
    """A slip of the finger is the usual cause."""
    torch.save(STATE, tmp_path / "model_best.pt")
    with pytest.raises(CheckpointError, match=r"Did you mean .*model_best\.pt\?"):
        load_layers(tmp_path / "model_bset.pt")
    with pytest.raises(CheckpointError, match="there is no folder"):
        load_layers(tmp_path / "nowhere" / "model.pt")


def test_a_tensorflow_checkpoint_is_several_files(tmp_path: Path) -> None:
    """Its name is a prefix, and no file has it."""
    (tmp_path / "model.ckpt.index").touch()
    with pytest.raises(CheckpointError, match="a TensorFlow checkpoint in several files"):
        load_layers(tmp_path / "model.ckpt")


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe would block for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="no regular file"):
        load_layers(tmp_path / "pipe")


def whole_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of a checkpoint in each format."""
    torch.save(STATE, folder / "new.pt")
    torch.save(STATE, folder / "old.pt", _use_new_zipfile_serialization=False)
    save_file(STATE, folder / "a.safetensors")
    np.savez(folder / "a.npz", **{name: tensor.numpy() for name, tensor in STATE.items()})
    names = ("new.pt", "old.pt", "a.safetensors", "a.npz")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.parametrize("name", ["new.pt", "old.pt", "a.safetensors", "a.npz"])
def test_a_file_that_was_cut_off_is_said_to_be(tmp_path: Path, name: str) -> None:
    """Wherever it ends: a partial download never gives weights, and never a traceback."""
    data = whole_files(tmp_path)[name]
    for share in (0.001, 0.01, 0.1, 0.3, 0.6, 0.9, 0.99):
        path = tmp_path / f"cut_{name}"
        path.write_bytes(data[: max(int(share * len(data)), 1)])
        with pytest.raises(CheckpointError):
            load_layers(path)


@pytest.mark.parametrize("name", ["new.pt", "old.pt", "a.safetensors", "a.npz"])
def test_damage_gives_weights_or_words(tmp_path: Path, name: str) -> None:
    """Bytes that were changed anywhere are read as numbers or refused, and no fault of ours."""
    data = bytearray(whole_files(tmp_path)[name])
    generator = np.random.default_rng(0)
    path = tmp_path / f"damaged_{name}"
    for place in generator.integers(0, min(len(data), 4000), 60):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        with contextlib.suppress(CheckpointError):
            assert load_layers(path)


@pytest.mark.parametrize("name", ["bomb.npz", "bomb.pt"])
def test_an_archive_that_unpacks_to_far_more_is_left_packed(tmp_path: Path, name: str) -> None:
    """Two mebibytes of zeros can stand for two gibibytes."""
    path = tmp_path / name
    inner = "weight_hh_l0.npy" if name.endswith("npz") else "model/data.pkl"
    zeros = bytes(2**20)
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(inner, "w", force_zip64=True) as entry,
    ):
        for _ in range(1100):
            entry.write(zeros)
    with pytest.raises(CheckpointError, match="would unpack to 1 GiB, more than 100 times"):
        load_layers(path)


def test_a_compressed_torch_archive_is_read(tmp_path: Path) -> None:
    """Somebody packed it again; it cannot be mapped to memory then."""
    torch.save(STATE, tmp_path / "plain.pt")
    with (
        zipfile.ZipFile(tmp_path / "plain.pt") as source,
        zipfile.ZipFile(tmp_path / "model.pt", "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert load_layers(tmp_path / "model.pt")[0].kind == "lstm"


def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    """A file of 2 GiB, nearly all of it a hole in the disk, is searched in a moment."""
    path = tmp_path / "model.pt"
    table = torch.empty(2**31, dtype=torch.uint8)  # reserved, and never touched
    with torch.serialization.skip_data():  # leaves room for the numbers, and writes none
        torch.save({"embedding.weight": table, **STATE}, path)
    assert path.stat().st_size > 2**31
    assert [layer.name for layer in load_layers(path)] == ["lstm"]

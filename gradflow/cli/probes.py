"""What `gradflow doctor` tries, one thing at a time: whatever is broken, the others are told.

Nothing here is imported at the top but the standard library, because any package may be the
broken one.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "torch", "numpy", "matplotlib", "pydantic", "rich", "typer", "jaxtyping", "safetensors",
    "dask", "distributed", "jinja2", "markupsafe", "pillow",
)  # fmt: skip
_MODULES = {"pillow": "PIL"}  # packages that are imported by another name
DTYPES = ("float16", "bfloat16", "float32", "float64")


def probe_packages() -> list[dict[str, Any]]:
    """Import every package that gradflow needs, and say what came of it."""
    return [_probe_package(name) for name in PACKAGES]


def _probe_package(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"package": name, "version": None, "works": False, "detail": ""}
    try:
        found["version"] = metadata.version(name)
        importlib.import_module(_MODULES.get(name, name))
        found["works"] = True
    except metadata.PackageNotFoundError:
        found["detail"] = f"not installed; pip install {name}"
    except Exception as problem:  # a broken package may raise anything
        found["detail"] = one_line(problem)
    return found


def probe_threads() -> dict[str, int | None]:
    """Return how many cores there are for this process, and how many torch uses."""
    torch = _torch()
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": allowed, "torch": None if torch is None else int(torch.get_num_threads())}


def probe_devices() -> list[str]:
    """Return the devices that torch sees, as `--device` takes them."""
    torch = _torch()
    if torch is None:
        return []
    devices = ["cpu"]
    try:
        devices += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        if torch.backends.mps.is_available():
            devices.append("mps")
    except Exception:  # a driver that is half there
        return devices
    return devices


def probe_dtypes(device: str, seed: int) -> list[dict[str, Any]]:
    """Run a matrix product, a sigmoid and their backward pass in each dtype on one device."""
    return [_probe_dtype(device, name, seed) for name in DTYPES]


def _probe_dtype(device: str, name: str, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = {"device": device, "dtype": name, "works": False, "detail": ""}
    torch = _torch()
    if torch is None:
        return {**found, "detail": "torch does not work"}
    try:
        generator = torch.Generator().manual_seed(seed)
        numbers = torch.randn(4, 4, generator=generator)
        matrix = numbers.to(device, getattr(torch, name)).requires_grad_()
        torch.sigmoid(matrix @ matrix).sum().backward()
        found["works"] = bool(matrix.grad.isfinite().all())
        found["detail"] = "" if found["works"] else "the gradient is not finite"
    except Exception as problem:
        found["detail"] = one_line(problem)
    return found


def probe_flush_denormal() -> bool | None:
    """Return whether the processor can flush subnormal numbers to zero; None without torch.

    Subnormal numbers are several times slower; gradflow rescales and does not depend on it.
    """
    torch = _torch()
    if torch is None:
        return None
    try:
        return bool(torch.set_flush_denormal(True))
    finally:
        torch.set_flush_denormal(False)


def probe_folder(folder: Path) -> dict[str, Any]:
    """Try to write a file where the run folder is or would be made."""
    existing = folder.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    found: dict[str, Any] = {"folder": str(folder), "works": False, "detail": ""}
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"gradflow")
        found["works"] = True
    except OSError as problem:
        found["detail"] = one_line(problem)
    return found


def one_line(problem: BaseException) -> str:
    """Return an error as one line, with its kind."""
    first = (str(problem).strip().splitlines() or [""])[0][:200]
    return f"{type(problem).__name__}: {first}"


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except Exception:
        return None

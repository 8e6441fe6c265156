"""`gradflow doctor`: what is installed here, and does it work?"""

from __future__ import annotations

import os
from pathlib import Path

import typer

from gradflow.cli import probes
from gradflow.cli.common import require_format
from gradflow.cli.options import Config, Debug, Force, Format, Out, Quiet, Seed
from gradflow.cli.streams import write_result
from gradflow.documents import Json, csv_text, json_text
from gradflow.provenance import Stopwatch, provenance


def doctor(
    seed: Seed = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
    debug: Debug = False,
    force: Force = False,
) -> None:
    """What is installed here, and does it work?

    Imports every package, computes in each dtype on each device, and tries
    whether the run folder can be written (runs/, unless --out names another).
    Nothing is stored.
    """
    shown = require_format(format)
    document = examine(_read_seed(seed, config), Path(out or "runs"))
    if shown == "json":
        write_result(json_text(document))
    elif shown == "csv":
        write_result(csv_text(document["checks"]))
    else:
        write_result(report_lines(document))
    raise typer.Exit(0 if all(check["passed"] for check in document["checks"]) else 1)


def examine(seed: int, folder: Path) -> Json:
    """Return the document of `gradflow doctor`, whatever is broken."""
    watch = Stopwatch()
    packages = probes.probe_packages()
    devices = probes.probe_devices()
    results: Json = {
        "packages": packages,
        "threads": probes.probe_threads(),
        "devices": devices,
        "dtypes": [row for device in devices for row in probes.probe_dtypes(device, seed)],
        "flush_denormal": probes.probe_flush_denormal(),
        "run_folder": probes.probe_folder(folder),
    }
    return {
        "schema": "gradflow/doctor/1",
        "environment": provenance("doctor", None, watch),
        "config": {"seed": seed},
        "results": results,
        "checks": _checks(results),
    }


def _checks(results: Json) -> list[Json]:
    """Return what must work for any command to run: packages, float64 and float32, the folder."""
    checks = [
        _check(f"{row['package']} works", row, row["version"] or "") for row in results["packages"]
    ]
    checks += [
        _check(f"{row['dtype']} computes on {row['device']}", row, "matrix product and backward")
        for row in results["dtypes"]
        if row["device"] == "cpu" and row["dtype"] in ("float32", "float64")
    ]
    folder = results["run_folder"]
    return [*checks, _check("the run folder can be written", folder, folder["folder"])]


def _check(name: str, row: Json, good: str) -> Json:
    return {"name": name, "passed": row["works"], "detail": row["detail"] or good}


def report_lines(document: Json) -> str:
    """Return the document as plain lines, which need no package to be shown."""
    results, environment = document["results"], document["environment"]
    threads, flush = results["threads"], results["flush_denormal"]
    lines = [
        _line("gradflow", environment["gradflow"]),
        _line("python", environment["python"]),
        _line("platform", environment["platform"]),
        _line("threads", f"{threads['torch']} used by torch, {threads['cores']} cores"),
        _line("devices", ", ".join(results["devices"]) or "none"),
    ]
    for device in results["devices"]:
        rows = [row for row in results["dtypes"] if row["device"] == device]
        lines.append(_line(f"dtypes on {device}", ", ".join(map(_dtype_words, rows))))
    words = {True: "can be flushed to zero", False: "cannot be flushed", None: "not known"}
    lines += [_line("subnormals", words[flush]), ""]
    for check in document["checks"]:
        mark = "ok    " if check["passed"] else "BROKEN"
        lines.append(f"{mark}  {check['name']}  ({check['detail']})")
    return "\n".join(lines) + "\n"


def _line(name: str, value: object) -> str:
    return f"{name:<15} {value}"


def _dtype_words(row: Json) -> str:
    return row["dtype"] if row["works"] else f"{row['dtype']} does not work ({row['detail']})"


def _read_seed(seed: str | None, config: str | None) -> int:
    """Return the seed in force; pydantic, which may be broken, is needed only to read one."""
    if seed is None and config is None and not os.environ.get("GRADFLOW_SEED"):
        return 0
    from gradflow.config import DoctorSettings, resolve_settings

    flags = {"seed": seed}
    return resolve_settings(DoctorSettings, flags=flags, environment=os.environ, config=config).seed

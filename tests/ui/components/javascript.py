"""Node and the kernel for tests of the components' JavaScript."""

import json
import random
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gptviz import digits
from gptviz.figures.theme import PALETTES

ROOT = Path(__file__).resolve().parents[3]
COMPONENTS = ROOT / "gptviz" / "ui" / "components"


def node() -> str:
    """A node to run: the machine's own, or the one that Playwright brings along."""
    found = shutil.which("node")
    if found:
        return found
    try:
        import playwright
    except ImportError:
        pytest.skip("there is no node on the PATH, and Playwright, which brings one, is not installed")
    return str(Path(playwright.__file__).parent / "driver" / "node")


def run_node(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [node(), *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def facts() -> dict[str, Any]:
    """What tests/js compares with: the kernel's text, the palettes, and Python's own digits."""
    return {
        "kernel": (COMPONENTS / "kernel.js").read_text("utf-8"),
        "cells": (COMPONENTS / "matrix" / "cells.js").read_text("utf-8"),
        "columns": (COMPONENTS / "lens" / "columns.js").read_text("utf-8"),
        "lines": (COMPONENTS / "arcs" / "lines.js").read_text("utf-8"),
        "layout": (COMPONENTS / "machine" / "layout.js").read_text("utf-8"),
        "palettes": {mode: asdict(colors) for mode, colors in PALETTES.items()},
        "digits": digits_table(),
    }


def digits_table() -> list[tuple[str, float | str, int | None, str]]:
    """(rule, number, its digits or None, the text) for many numbers: exact halves, carries, signs, sizes."""
    rng = random.Random(6)
    exact = "0 0.125 0.375 2.5 3.5 0.5 1.5 9.995 9.996 0.99996 99.5 1e-4 9.9996e-5 1e21 3e22 0.0995 0.09949"
    exact += " 999.5 999.995 1000 1234.5 1235.5 6.103515625e-05 9.5367431640625e-07 0.0009765625"
    numbers = [*map(float, exact.split()), *(n / 64 for n in range(64))]
    numbers += [rng.uniform(-1, 1) * 10 ** rng.uniform(-12, 6) for _ in range(250)]
    signed = [*numbers, *(-x for x in numbers), float("nan"), float("inf"), float("-inf")]
    table: list[tuple[str, float | str, int | None, str]] = []
    for value in signed:
        sent = value if abs(value) < float("inf") else str(value)
        table += [("fixed", sent, d, digits.fixed(value, d)) for d in (0, 1, 2, 4)]
        table += [("significant", sent, d, digits.significant(value, d)) for d in (1, 2, 3, 5)]
        table += [(name, sent, None, getattr(digits, name)(value)) for name in ("weight", "number")]
    return table


def write_facts(folder: Path) -> Path:
    path = folder / "kernel.json"
    path.write_text(json.dumps(facts()), encoding="utf-8")
    return path

"""The components' JavaScript: every module as the browser gets it is linted, its pure parts are tested."""

import json
import os
import random
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from gptviz import digits
from gptviz.analysis.next_token import entropy
from gptviz.engine.sampling import Sampling, distribution
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import PALETTES
from gptviz.teach.handout import SCRIPTS
from gptviz.ui.components.code import bundle, kernel, own, script
from gptviz.ui.components.kernel import packed

ROOT = Path(__file__).resolve().parents[3]
COMPONENTS = ROOT / "gptviz" / "ui" / "components"
HANDOUT = ROOT / "gptviz" / "teach" / "handout"
NOTEBOOK = ROOT / "gptviz" / "ui" / "notebook"
NAMES = sorted({path.parent.name for path in COMPONENTS.glob("*/*.js")})

# what tests/js tries, by the name that it has there
PURE = {"kernel": "kernel.js", "cells": "matrix/cells.js", "columns": "lens/columns.js"}
PURE |= {
    "lines": "arcs/lines.js",
    "layout": "machine/layout.js",
    "paths": "machine/paths.js",
    "chances": "candidates/chances.js",
}


def text_of(*files: Path) -> str:
    return "\n".join(file.read_text("utf-8") for file in files)


def run_node(
    folder: Path, *arguments: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """By the machine's own node, or the one that Playwright brings along."""
    node = shutil.which("node")
    if node is None:
        why = "there is no node on the PATH, and Playwright, which brings one, is not installed"
        node = str(
            Path(pytest.importorskip("playwright", reason=why).__file__).parent / "driver" / "node"
        )
    given = {"cwd": folder, "env": environment, "timeout": 120}
    return subprocess.run([node, *arguments], capture_output=True, text=True, **given)


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
    shares = [abs(x) for x in numbers if abs(x) <= 1] + [1.0, 0.99, 0.9996, 1 - 1e-7, 1 - 1e-15]
    table += [("probability", p, None, probability_text(p)) for p in shares]
    return table


def chances_table() -> list[dict[str, Any]]:
    """Logits from the largest down, settings, and what Python's `distribution` makes of them."""
    generator = torch.Generator().manual_seed(7)
    logits = [8 * torch.randn(size, generator=generator) for size in (1, 2, 9, 700)]
    logits.append(torch.full((5,), 3.0))  # all alike
    table = []
    for row in logits:
        ordered = row.sort(descending=True).values
        for temperature in (0.0, 0.05, 0.7, 1.0, 2.0):
            for top_k, top_p in ((None, None), (3, None), (None, 0.01), (None, 0.6), (4, 0.9)):
                found = distribution(ordered, Sampling(temperature, top_k, top_p))
                table.append(
                    {
                        "logits": packed(ordered.numpy()),
                        "settings": {"temperature": temperature, "top_k": top_k, "top_p": top_p},
                        "p": found.probabilities.tolist(),
                        "size": int(found.in_top_k.sum()),
                        "kept": int(found.kept.sum()),
                        "bits": entropy(found.probabilities).bits,
                    }
                )
    return table


def test_the_pure_parts_do_what_python_does(tmp_path):
    facts: dict[str, Any] = {name: text_of(COMPONENTS / path) for name, path in PURE.items()}
    facts["palettes"] = {mode: asdict(colors) for mode, colors in PALETTES.items()}
    facts["digits"] = digits_table()
    facts["distributions"] = chances_table()
    (tmp_path / "kernel.json").write_text(json.dumps(facts), encoding="utf-8")
    tests = sorted(map(str, (ROOT / "tests" / "js").glob("*.test.js")))
    done = run_node(tmp_path, "--test", *tests, GPTVIZ_KERNEL=str(tmp_path / "kernel.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 0" not in done.stdout


def test_no_module_uses_what_is_not_there(tmp_path):
    """oxlint over what the browser gets: the kernel, each component that imports it, hand-out, notebook."""
    oxlint = shutil.which("oxlint")
    if oxlint is None:
        if os.environ.get("GPTVIZ_REQUIRE_BROWSER") == "1":
            pytest.fail(
                "oxlint is not installed: pip install -r requirements-dev.txt", pytrace=False
            )
        pytest.skip("oxlint is not installed: pip install -r requirements-dev.txt")
    scripts = {
        "handout": [HANDOUT / name for name in SCRIPTS],
        "frame": [NOTEBOOK / "chart.js", NOTEBOOK / "frame.js"],
    }
    modules = {name: own(name, ".js") for name in NAMES}
    for name, files in scripts.items():
        modules[name] = "const gvComponents = {};\n" + text_of(COMPONENTS / "draw.js", *files)
    modules = {
        name: f"import {{ gv }} from './kernel.mjs';\n{text}" for name, text in modules.items()
    }
    for name, text in (
        modules | {"kernel": kernel(), "model": text_of(HANDOUT / "model.js")}
    ).items():
        (tmp_path / f"{name}.mjs").write_text(text, encoding="utf-8")
    rules = ("--config", ROOT / "tests" / "js" / "oxlint.json", "--deny-warnings")
    done = subprocess.run(
        [oxlint, *rules, "."], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_components_are_one_script_that_no_word_of_theirs_ends(tmp_path):
    """As a page without a server has them; where each is drawn, a browser says (tests/browser)."""
    (tmp_path / "all.js").write_text(
        bundle(*NAMES)
        + "\nfor (const name in gvComponents) console.log(name, typeof gvComponents[name]);"
    )
    done = run_node(tmp_path, "all.js")
    assert done.stdout.split("\n")[:-1] == [f"{name} function" for name in NAMES], done.stderr
    element = script("x = '</script><!--'")
    assert element.lower().count("</script") == 1 and "<!--" not in element

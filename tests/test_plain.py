"""The rules of plain code: one thought a statement, and docstrings that say what is there.

What was written before these rules is counted in plain_old.txt, file by file. A file may only get
better: `GPTVIZ_WRITE_SNAPSHOTS=1 pytest -n 0 tests/test_plain.py` writes the smaller counts.
"""

import ast
import os
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
OLD = Path(__file__).with_name("plain_old.txt")
FOLDERS = ("gptviz", "pages", "tests", "benchmarks", "docs", "deploy")

RIDDLE = re.compile(r"Return (who|what|where|why|how|whether|when)\b")
HAS_DOCSTRING = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def has_condition(node: ast.AST) -> bool:
    """Whether an `x if c else y` stands in this expression."""
    return any(isinstance(part, ast.IfExp) for part in ast.walk(node))


def is_text(node: ast.AST) -> bool:
    """Whether this is a text that is written down, with or without holes."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.JoinedStr)


def is_count(node: ast.AST) -> bool:
    """Whether this is a number, arithmetic, a constant or a length, as in a rule of `len(columns)` dashes."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith(("len", ".count"))
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node).rpartition(".")[2].isupper()
    return isinstance(node, ast.BinOp) or (
        isinstance(node, ast.Constant) and isinstance(node.value, int)
    )


def is_switched_text(node: ast.BinOp) -> bool:
    """Whether a condition switches a text on and off: `", and so on" * many`."""
    if not isinstance(node.op, ast.Mult):
        return False
    sides = (node.left, node.right)
    return any(is_text(side) for side in sides) and not any(is_count(side) for side in sides)


def is_pair(node: ast.Assign) -> bool:
    """Whether two things are assigned that have nothing to do with each other: `a, b = x, y`.

    In `a, b = b, a + b` they have: one cannot be assigned before the other.
    """
    if not isinstance(node.targets[0], ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    assigned = {ast.unparse(target) for target in node.targets[0].elts}
    read = {ast.unparse(part) for part in ast.walk(node.value) if isinstance(part, ast.expr)}
    return not assigned & read


def rule_broken(node: ast.AST) -> str | None:
    """The rule that this node itself breaks, if it breaks one."""
    if isinstance(node, ast.IfExp) and any(
        has_condition(part) for part in ast.iter_child_nodes(node)
    ):
        return "nested condition"
    if isinstance(node, ast.FormattedValue) and has_condition(node.value):
        return "condition in a hole"
    if isinstance(node, ast.BinOp) and is_switched_text(node):
        return "text times condition"
    if isinstance(node, ast.Assign) and is_pair(node):
        return "pair"
    if isinstance(node, HAS_DOCSTRING) and RIDDLE.match(ast.get_docstring(node) or ""):
        return "riddle"
    return None


def folded_thoughts(tree: ast.AST) -> list[tuple[str, int]]:
    """What breaks a rule in a file: the name of the rule, and the line."""
    broken = []
    for node in ast.walk(tree):
        rule = rule_broken(node)
        if rule is not None:
            broken.append((rule, getattr(node, "lineno", 1)))
    return broken


def sources() -> list[Path]:
    found = [ROOT / "app.py"]
    for folder in FOLDERS:
        found += (ROOT / folder).rglob("*.py")
    return sorted(found)


def read_old() -> Counter[tuple[str, str]]:
    """How often each file may still break each rule."""
    allowed: Counter[tuple[str, str]] = Counter()
    for line in OLD.read_text(encoding="utf-8").splitlines():
        count, rule, name = line.split("\t")
        allowed[name, rule] = int(count)
    return allowed


def test_code_is_plain_and_old_code_gets_plainer():
    allowed = read_old()
    counted: Counter[tuple[str, str]] = Counter()
    too_many = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        broken = folded_thoughts(ast.parse(path.read_text(encoding="utf-8")))
        in_file = Counter(rule for rule, _ in broken)
        for rule, count in in_file.items():
            counted[name, rule] = count
            if count > allowed[name, rule]:
                lines = [line for other, line in broken if other == rule]
                too_many.append(
                    f"{name}: {rule}, {count} for {allowed[name, rule]}, in lines {lines}"
                )
    assert not too_many
    if os.environ.get("GPTVIZ_WRITE_SNAPSHOTS"):
        rows = [f"{count}\t{rule}\t{name}\n" for (name, rule), count in sorted(counted.items())]
        OLD.write_text("".join(rows), encoding="utf-8")
    assert counted == read_old(), "code has become plainer: write the smaller counts (see above)"


def test_each_rule_sees_what_it_is_about():
    breaks = {
        "a = 1 if b else 2 if c else 3": ["nested condition"],
        'f"{1 if a else 2}"': ["condition in a hole"],
        '", and more" * many': ["text times condition"],
        'f"{a}" * (b > 2)': ["text times condition"],
        "a, b = c, d": ["pair"],
        'def f():\n    """Return whether it is so."""': ["riddle"],
    }
    for code, rules in breaks.items():
        assert [rule for rule, _ in folded_thoughts(ast.parse(code))] == rules, code
    for code in (
        "a = 1 if b else 2",
        '"-" * 80',
        '"-" * (width + 1)',
        '"-" * len(columns)',
        '"-" * LONGEST',
        "a, b = b, a + b",
        "a, b = pair",
        'f"{a}"',
    ):
        assert folded_thoughts(ast.parse(code)) == [], code

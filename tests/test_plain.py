"""The rules of plain code: one thought a statement, and docstrings that say what is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
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


def test_code_is_plain():
    folded = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        for rule, line in folded_thoughts(ast.parse(path.read_text(encoding="utf-8"))):
            folded.append(f"{name}:{line}: {rule}")
    assert not folded


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

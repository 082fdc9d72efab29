"""The documents' Python about the bundled model runs as it stands there, and gives what it says."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXTS = [(ROOT / name).read_text("utf-8") for name in ("README.md", "docs/python.md", "docs/claims.md")]


def test_the_documented_python_runs():
    blocks = [block for text in TEXTS for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    assert len(blocks) > 2
    there = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), there)
    assert len(there["steps"]) == 3 and len(there["greedy"]) == 60 and len(there["best"].ids) == 8
    assert there["found"].agrees and there["found"].kl_bits > 0


def test_every_link_of_the_documents_leads_to_a_file():
    for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", file.read_text("utf-8")):
            assert (file.parent / link).exists(), f"{file.name}: {link}"

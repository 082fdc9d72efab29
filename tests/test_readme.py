"""The README's Python about the bundled model runs as it stands there, and gives what its comments say."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_readmes_python_runs():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    ours = [block for block in blocks if "gptviz.load(" not in block or 'gptviz.load("mini")' in block]
    assert len(ours) == 2
    there: dict = {}
    for block in ours:
        exec(compile(block, str(README), "exec"), there)
    assert len(there["steps"]) == 3 and len(there["greedy"]) == 60 and len(there["best"].ids) == 8
    assert there["found"].agrees and there["found"].kl_bits > 0

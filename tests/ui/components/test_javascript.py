"""The components' JavaScript: every module as the browser gets it is linted, its pure parts are tested."""

import os
import shutil
import subprocess

import pytest

from gptviz.handout import SCRIPTS
from gptviz.ui.components.bundle import bundle, script
from gptviz.ui.components.code import kernel, own
from tests.ui.components.javascript import COMPONENTS, ROOT, run_node, write_facts

HANDOUT = ROOT / "gptviz" / "handout"
NOTEBOOK = ROOT / "gptviz" / "ui" / "notebook"
NAMES = sorted({path.parent.name for path in COMPONENTS.glob("*/*.js")})


def test_the_pure_parts_do_what_python_does(tmp_path):
    tests = sorted(str(path) for path in (ROOT / "tests" / "js").glob("*.test.js"))
    done = run_node(tmp_path, "--test", *tests, GPTVIZ_KERNEL=str(write_facts(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 0" not in done.stdout


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "kernel.mjs").write_text(kernel(), encoding="utf-8")
    for name in NAMES:
        text = f"import {{ gv }} from './kernel.mjs';\n{own(name, '.js')}"
        (folder / f"{name}.mjs").write_text(text, encoding="utf-8")
    (folder / "model.mjs").write_text((HANDOUT / "model.js").read_text("utf-8"), "utf-8")
    files = [COMPONENTS / "draw.js", *(HANDOUT / name for name in SCRIPTS)]
    page = "\n".join(file.read_text("utf-8") for file in files)
    (folder / "handout.mjs").write_text(
        f"import {{ gv }} from './kernel.mjs';\nconst gvComponents = {{}};\n{page}"
    )
    frame = "\n".join(file.read_text("utf-8") for file in (COMPONENTS / "draw.js", NOTEBOOK / "frame.js"))
    (folder / "frame.mjs").write_text(
        f"import {{ gv }} from './kernel.mjs';\nconst gvComponents = {{}};\n{frame}"
    )
    return folder


def test_no_module_uses_what_is_not_there(modules):
    """oxlint over what the browser gets: the kernel, each component that imports it, hand-out, notebook."""
    oxlint = shutil.which("oxlint")
    if oxlint is None:
        if os.environ.get("GPTVIZ_REQUIRE_BROWSER") == "1":
            pytest.fail("oxlint is not installed: pip install -r requirements-dev.txt", pytrace=False)
        pytest.skip("oxlint is not installed: pip install -r requirements-dev.txt")
    done = subprocess.run(
        [oxlint, "--config", str(ROOT / "tests" / "js" / "oxlint.json"), "--deny-warnings", "."],
        cwd=modules,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_components_are_one_script_that_no_word_of_theirs_ends(tmp_path):
    """As a page without a server has them; where each is drawn, a browser says (tests/browser)."""
    (tmp_path / "all.js").write_text(
        bundle(*NAMES) + "\nfor (const name in gvComponents) console.log(name, typeof gvComponents[name][0]);"
    )
    done = run_node(tmp_path, "all.js")
    assert done.stdout.split("\n")[:-1] == [f"{name} function" for name in NAMES], done.stderr
    element = script("x = '</script><!--'")
    assert element.lower().count("</script") == 1 and "<!--" not in element

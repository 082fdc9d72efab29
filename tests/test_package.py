"""What `pip install .` would bring: every file that the app reads, its JavaScript and styles too."""

import subprocess
from pathlib import Path

import pytest
from setuptools import Distribution

ROOT = Path(__file__).parent.parent


def installed():
    """The files that setuptools takes into a wheel, as pyproject.toml says it; the current folder is ours."""
    package = Distribution({"script_name": "setup.py"})
    package.parse_config_files()
    package.include_package_data = False  # the globs of pyproject.toml alone, and no egg-info
    build = package.get_command_obj("build_py")
    build.ensure_finalized()
    modules = [Path(path) for _, _, path in build.find_all_modules()]
    data = [Path(folder, name) for _, folder, _, names in build.data_files for name in names]
    return {str((ROOT / path).resolve().relative_to(ROOT)) for path in modules + data}


def ours():
    """The files of the package: those that git has or would take; without git all that are there."""
    try:
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "gptviz"]
        said = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        found = [path for path in (ROOT / "gptviz").rglob("*") if "__pycache__" not in path.parts]
        said = [str(path.relative_to(ROOT)) for path in found]
    return {path for path in said if (ROOT / path).is_file()}


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_an_installed_gptviz_has_every_file():
    assert {"gptviz/ui/components/kernel.js", "gptviz/assets/mini/model.safetensors"} <= ours()
    assert installed() == ours()

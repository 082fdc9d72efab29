"""What a person has set for gptviz and for what it stands on does not reach the tests."""

import os
import subprocess
import sys
from pathlib import Path

import tests

HOSTILE = {
    "HF_HUB_OFFLINE": "1",
    "HF_HOME": "/nowhere",
    "HF_HUB_CACHE": "/nowhere",
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "HUGGINGFACE_HUB_CACHE": "/nowhere",
    "TRANSFORMERS_OFFLINE": "1",
    "TIKTOKEN_CACHE_DIR": "/nowhere",
    "GPTVIZ_KERNELS": "off",
    "GPTVIZ_DEVICE": "cuda",
    "GPTVIZ_TRACE_CACHE_MB": "0",
    "STREAMLIT_SERVER_PORT": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "PYTORCH_JIT": "0",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "GPTVIZ_REQUIRE_BROWSER": "1",
}

PROGRAM = "import tests, os; print(*sorted(os.environ)); import gptviz; from huggingface_hub import constants"


def test_nothing_that_is_read_is_set():
    found = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}; assert not constants.HF_HUB_OFFLINE"],
        env=os.environ | HOSTILE,
        cwd=Path(tests.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    left = set(found.stdout.split()) & set(HOSTILE)
    assert left == {"GPTVIZ_REQUIRE_BROWSER"}, "which is for the tests"

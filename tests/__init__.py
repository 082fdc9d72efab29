"""The tests. Whatever their user has set for gptviz, or for what it stands on, is not set for them.

This is imported before any test module and before gptviz: some of these are read when a library is imported.
"""

import os

BEGINNINGS = (
    "GPTVIZ_", "HF_", "HUGGINGFACE_", "HUGGING_FACE_", "TRANSFORMERS_", "TOKENIZERS_", "TIKTOKEN_",
    "DATA_GYM_", "STREAMLIT_", "TORCH", "PYTORCH_", "PLOTLY_", "PANDAS_", "NPY_", "RAY_", "SQLALCHEMY_",
)  # fmt: skip
ENDS = ("_PROXY", "_proxy")  # the servers of the tests are on this machine

# what a person tells the tests themselves, and where the workers of one run keep what they share
FOR_THE_TESTS = (
    "GPTVIZ_REQUIRE_BROWSER",
    "GPTVIZ_WRITE_SNAPSHOTS",
    "GPTVIZ_FUZZ",
    "GPTVIZ_CACHE_DIR",
)

for _name in [*os.environ]:
    if _name not in FOR_THE_TESTS and (_name.startswith(BEGINNINGS) or _name.endswith(ENDS)):
        del os.environ[_name]

"""What stands in a Plotly figure after it went to the browser: its JSON, with the typed arrays decoded."""

import base64
import json
from typing import Any

import numpy as np

DTYPES = {
    "f4": "<f4",
    "f8": "<f8",
    "i1": "i1",
    "u1": "u1",
    "i2": "<i2",
    "u2": "<u2",
    "i4": "<i4",
    "u4": "<u4",
}


def decoded(value: Any) -> Any:
    """The same JSON with every {"dtype", "bdata", "shape"} as the NumPy array that it stands for."""
    if isinstance(value, dict):
        if "bdata" in value:
            array = np.frombuffer(base64.b64decode(value["bdata"]), DTYPES[value["dtype"]])
            shape = [int(n) for n in str(value.get("shape", array.size)).split(",")]
            return array.reshape(shape)
        return {key: decoded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [decoded(part) for part in value]
    return value


def charts(at: Any) -> list[dict[str, Any]]:
    """The figures of a page that AppTest ran, from top to bottom."""
    return [decoded(json.loads(chart.proto.spec)) for chart in at.get("plotly_chart")]

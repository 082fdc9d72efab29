"""What a model has in place of what a page of the app explains.

A page that a record does not name here explains that architecture, with numbers of its own. A sentence
for a page that can do so for both goes when the page does.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Instead:
    """What a page `explains`, what a model `has` there, and the `page` that shows it, "" where none does yet.

    Both are said in a sentence: "This page explains LayerNorm; this model has RMSNorm".
    """

    explains: str
    has: str
    page: str = ""


LLAMA: Mapping[str, Instead] = {}

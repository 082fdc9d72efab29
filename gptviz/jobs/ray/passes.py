"""Texts read by a cluster: a deployment of Ray Serve has the large models, and reads what waits together.

It is one for all of them: a replica keeps the last few models, Serve sends a text where its model is, and
begins more replicas, at most one on a machine, while texts wait.
"""

import asyncio
import os
import pickle
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ray import serve
from ray.serve.handle import DeploymentHandle

from gptviz import LanguageModel, Reduction
from gptviz.engine import forward
from gptviz.engine.edits import Edit
from gptviz.engine.sites import Key

NAME = "gptviz"
MODELS = 3  # that a replica keeps
TOGETHER = 8  # texts of a pass
WAIT = 0.01  # seconds in which others' texts may come

# its ids, and what is asked of `LanguageModel.trace`: edits, at_once, reduce
Text = tuple[tuple[int, ...], tuple[Edit, ...], tuple[str | Key, ...], tuple[Reduction, ...]]


@serve.deployment(
    max_ongoing_requests=1000,
    max_replicas_per_node=1,
    autoscaling_config={
        "min_replicas": 1,
        "max_replicas": 100,
        "target_ongoing_requests": TOGETHER,
    },
    ray_actor_options={"num_cpus": 0},  # somebody looks at a page, which is not to wait for maps
)
class Passes:
    """The models of a replica."""

    def __init__(self) -> None:
        self._stored: dict[str, Any] = {}

    async def read(self, model: str, stored: list[Any], text: Text) -> bytes:
        """The trace of a text, `sent` and pickled. Raises what `LanguageModel.trace` does."""
        self._stored[model] = stored[0]
        found: bytes | ValueError = await self._together((await self._model(model), text))
        if isinstance(found, ValueError):
            raise found
        return found

    @serve.multiplexed(max_num_models_per_replica=MODELS)
    async def _model(self, model: str) -> LanguageModel:
        """A model from the cluster's store, where its weights stay."""
        return await self._stored[model]

    @serve.batch(max_batch_size=TOGETHER, batch_wait_timeout_s=WAIT)
    async def _together(self, asked: list[tuple[LanguageModel, Text]]) -> list[bytes | ValueError]:
        """Of one model: Serve parts them."""
        texts = [text for _, text in asked]
        return await asyncio.get_running_loop().run_in_executor(None, read, asked[0][0], texts)


def read(lm: LanguageModel, texts: Sequence[Text]) -> list[bytes | ValueError]:
    """Each text's trace, pickled, or what is wrong with it: those of which the same is asked in one pass."""
    forward.threads_for_passes_only(os.cpu_count())
    alike: dict[Any, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        alike[text[1:]].append(place)
    found: dict[int, bytes | ValueError] = {}
    for places in alike.values():
        try:
            found |= zip(places, _letters(lm, [texts[place] for place in places]), strict=True)
        except ValueError:
            for place in places:  # whose text it was
                try:
                    (found[place],) = _letters(lm, [texts[place]])
                except ValueError as problem:
                    found[place] = problem
    return [found[place] for place in range(len(texts))]


def _letters(lm: LanguageModel, texts: Sequence[Text]) -> list[bytes]:
    _, edits, at_once, reduce = texts[0]
    more = {"reduce": reduce} if reduce else {}
    traces = lm.edited(*edits).traces(
        [text[0] for text in texts], TOGETHER, at_once=at_once, **more
    )
    return [pickle.dumps(trace.sent()) for trace in traces]


def deployed() -> DeploymentHandle[Passes]:
    """The cluster's deployment, which is begun if nobody has yet."""
    there = serve.status().applications.get(NAME)
    if there is None or there.status not in ("RUNNING", "DEPLOYING"):
        serve.start(proxy_location="Disabled")  # nobody but who is in the cluster asks
        return serve.run(Passes.bind(), name=NAME, route_prefix=None)  # type: ignore[attr-defined]
    return serve.get_app_handle(NAME)

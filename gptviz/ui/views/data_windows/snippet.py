"""The Data windows page in Python: a text cut into windows, and the windows put together as batches."""

import numpy as np
import torch
from torch.utils.data import DataLoader, default_collate

import gptviz
from gptviz.analysis.feed_forward import of_any_text
from gptviz.analysis.tokens import chapter
from gptviz.tokenizer import get_encoding
from gptviz.training.datasets import GPTDatasetV1


def batch(
    lm: gptviz.LanguageModel,
    text: str | None = None,
    max_length: int = 4,
    stride: int = 1,
    batch_size: int = 8,
    drop_last: bool = True,
    window: int = 0,
    special_tokens: bool = False,
    encoding: str | None = None,
) -> list[torch.Tensor]:
    """Inputs and targets of the batch that `window` is in, (windows, max_length) each.

    `text` None is the chapter that is shipped; `encoding` is another tokenizer than the model's.
    """
    text = chapter() if text is None else text
    ids = lm.encode(text, special_tokens) if encoding is None else get_encoding(encoding).encode(text)
    dataset = GPTDatasetV1(np.array(ids), max_length, stride)
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=False, drop_last=drop_last)

    if window < len(dataset):  # one window, max_length examples
        inputs, targets = dataset[window]
        for end in range(1, max_length + 1):
            print(inputs[:end].tolist(), "-->", targets[end - 1].item())
        if encoding is None and max_length <= lm.config.context_length:  # one pass predicts them all
            changed = of_any_text(lm)  # with its edits but for those of a place of one text
            say_losses(changed, inputs.tolist(), targets.tolist())
            if changed.edits:
                print("unchanged:")
                say_losses(changed.plain, inputs.tolist(), targets.tolist())

    batches, number = list(loader), window // batch_size
    if number < len(batches):
        return list(batches[number])
    left = [dataset[i] for i in range(number * batch_size, len(dataset))]  # what drop_last has dropped
    return list(default_collate(left)) if left else []


def say_losses(lm: gptviz.LanguageModel, inputs: list[int], targets: list[int]) -> None:
    """What one pass over a window's inputs gives each target, and what it loses by that."""
    t, losses = lm.trace(inputs, keep=[]), []
    for position, target in enumerate(targets):
        probability = torch.softmax(t.logits(position).double(), dim=-1)[target].item()
        losses.append(-np.log(probability))
        print(f"position {position}: probability {probability:.4f}, loss {losses[-1]:.4f}")
    print(f"the window's loss: {np.mean(losses):.4f}")

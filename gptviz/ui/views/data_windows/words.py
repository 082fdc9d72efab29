"""The Data windows page's sentences, with the numbers of this text's windows in them."""

from gptviz.digits import fixed
from gptviz.figures.next_token import loss_text
from gptviz.lessons.windows import Windows


def what_to_see(windows: Windows) -> str:
    """What stands above the picture."""
    length, stride, count = windows.max_length, windows.stride, len(windows)
    if not count:
        return too_short(windows)
    slide = (
        ""
        if count == 1
        else f", {_tokens(stride)} further on each time: **{count:,} windows**, a row each, batch by batch"
    )
    return (
        f"A window of **{_tokens(length)}** slides over the {len(windows.ids):,} tokens of the text{slide}. "
        "What a window is to predict, its **targets**, are the same tokens from one place further right: the "
        "text itself says what is true, and nobody has to write an answer down. "
    )


def too_short(windows: Windows) -> str:
    """Why there is nothing to see, and what to do."""
    length, n = windows.max_length, len(windows.ids)
    return (
        f"The text has {_tokens(n)}: too few for a window of {_tokens(length)}, whose last input needs a "
        "target, too. Type a longer text, or take the chapter."
    )


def overlap(windows: Windows) -> str:
    """What two windows have in common, and what that means."""
    length, shared = windows.max_length, windows.shared
    if len(windows) < 2:
        return ""
    if shared > 0:
        return (
            f"Two neighbours share {shared} of their {_tokens(length)}, so that the same token comes again "
            f"in up to {-(-length // windows.stride)} windows: more examples from one text, and more of them "
            "that the model has seen before."
        )
    if shared == 0:
        return (
            "The stride is as large as the window: no token is an input twice, or a target "
            "twice, which is how models are usually trained."
        )
    return (
        f"The stride is larger than the window: from one to the next {_tokens(-shared)} "
        f"{'is' if shared == -1 else 'are'} skipped, an input of no window."
    )


def batches(windows: Windows) -> str:
    """How the windows fill the batches, and what drop_last loses."""
    size, count = windows.batch_size, len(windows)
    last = count % size
    if not last:
        fill = (
            f"The {count:,} windows fill {_batches(count // size)} of {size} exactly: nothing is left over."
        )
    elif windows.drop_last:
        fill = (
            f"{count:,} windows are {_batches(count // size)} of {size} and {last} more. `drop_last` loses "
            f"{'that one' if last == 1 else f'those {last}'}, so that all batches are equally large and none "
            "of a few windows pulls as hard as a full one."
        )
    else:
        fill = (
            f"{count:,} windows are {_batches(count // size)} of {size} and one of the {last} that are left."
        )
    never = windows.never_target()
    if not never:
        return fill + " Every token but the first is a target at least once."
    return f"{fill} {_tokens(never)} of the text {'is' if never == 1 else 'are'} never to be predicted."


def batch_title(windows: Windows, number: int) -> str:
    members = windows.members(number)
    which = f"window {members[0]}" if len(members) == 1 else f"windows {members[0]} to {members[-1]}"
    if number >= windows.n_batches:
        return f"The batch that is dropped: {which}, {len(members)} of {windows.batch_size}"
    return f"Batch {number}: {which}"


def printed(source: str, windows: Windows, number: int, encoding: str) -> str:
    """Below the two matrices."""
    as_there = (windows.max_length, windows.batch_size, number) == (4, 8, 0) and windows.stride in (1, 4)
    if source == "book" and as_there:
        return "These are the numbers that the book prints for its text, token by token."
    return f"Token ids of the tokenizer `{encoding}`, as PyTorch prints them: a row a window."


def why_so_many(number: int, length: int, loss: float | None, unchanged: float | None = None) -> str:
    """One window is T examples; `loss` is the mean of what the model loses on them, and what it loses
    `unchanged`, where something is changed in it."""
    many = "one training example" if length == 1 else f"**{length} training examples**"
    text = (
        f"Window {number} holds {many}, one a position: the causal mask hides what comes later, so that a "
        "single pass over the window predicts after its first token, after its first two, and so on, all at "
        "once, and learns from all of them. "
    )
    if loss is None:
        return text
    which, mean = "", f"**{loss_text(loss)[0]}**"
    if unchanged is not None:
        which, mean = ", unchanged → changed", f"{loss_text(unchanged)[0]} → {mean}"
    return text + (
        f"How probable this model thinks each target now stands beside it{which}; −ln of that is the loss, "
        f"and their mean, {mean}, is the loss of this window."
    )


def left_out(count: int) -> str:
    """Of changes that are about a place of the prompt."""
    what = "One change is" if count == 1 else f"{count} changes are"
    return f"{what} about a place of your text, and not made where the model reads a window of it."


def cut_short(shown: int, length: int) -> str:
    return f"The first {shown} of {length}; all are in *In numbers*."


def how_often(windows: Windows) -> str:
    """Above the chart of how often each token is a target."""
    times = windows.times_target()[1:]
    mean = float(times.mean()) if len(times) else 0.0
    return (
        f"A token is a target {fixed(mean, 2)} times on average in one go through the text, at most "
        f"{int(times.max()) if len(times) else 0} times. The first token never is: nothing stands before it."
    )


def _tokens(count: int) -> str:
    return f"{count:,} token{'s' * (count != 1)}"


def _batches(count: int) -> str:
    return f"{count:,} batch{'es' * (count != 1)}"

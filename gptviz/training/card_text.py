"""The words of MODEL_CARD.md. What stands in braces is filled in by `gptviz.training.card`."""

CARD = """\
# The bundled model, "mini"

A GPT-2 in miniature, trained for gptviz on {n_training} old English books, so that a person without a
network has a model whose attention is worth looking at. It is no assistant and knows nothing: it
writes on.

{n_layers} blocks of {n_heads} heads, {emb_dim} dimensions, a context of {context} tokens, a vocabulary of
{vocab_size} tokens (byte-level BPE, learnt on the same books), {tied} embeddings: {parameters} parameters.
In float16 and with the tokenizer {megabytes} MB; loaded in {load_seconds} s where it was measured.

This card is written by `python -m gptviz.training card` from the run's checkpoint and from what
`python -m gptviz.training evaluate` measured on these very weights (SHA-256 `{sha256}`…).

## What it can do, as measured

```sh
python -m gptviz.training evaluate --model gptviz/assets/mini \\
    --text books.txt.gz --table books.tsv --json evaluation.json
```

### Loss on books it never saw

Nats per token / bits per byte. Neither the model nor its tokenizer was trained on these books.
{limited}
{losses}

- *model*: windows of {context} tokens that do not overlap, every token scored once; the first ones of
  each window are predicted from little.
- *model, sliding*: windows that start every {slide} tokens, each scoring only what the one before it did
  not, so that at least {seen} tokens stand before a scored one (fewer at a book's beginning).
- *bigram*, *unigram*: counts over the same training tokens. The bigram is mixed with the unigram,
  P(b | a) = (c(a, b) + k P(b)) / (c(a) + k), with k = {strength} chosen on the last twentieth of the
  training tokens.
- A book begins after one `<|endoftext|>`, which is not scored. Bytes are those of the book's UTF-8.

### Heads

Means over {draws} sequences of random tokens followed by themselves ({periods} tokens, twice).
Blocks and heads count from 0.

Previous-token score: the mean attention from each token to the one before it.

{previous_grid}

Induction score: the mean attention from a token's second occurrence to the token after its first.

{induction_grid}

The folder's `heads.json`, by `python -m gptviz.training heads`, has what the page "Heads on trial" says of
these weights: what every head does in general, and how the trials of these labels ended.

### Copying

Loss on the same sequences in nats per token. The second half's first token cannot be foreseen and is
counted all the same.

{copying}

| asked of this model | wanted | measured |
| --- | ---: | ---: |
{asked}

### How it writes

"{prompt}", continued for {sample_tokens} tokens at temperature {temperature}, with the seeds {seeds}: not
picked from more.

{samples}

## How it was trained

{steps} steps of {batch} windows of {context} tokens: {million_tokens} million tokens in
{minutes} minutes{machine}, with bf16 autocast.
{hidden} (learning rate {hidden_lr}) for the blocks' matrices, AdamW ({other_lr}) for embeddings,
LayerNorms and biases; weight decay {weight_decay}, gradients clipped to norm {clip}, no dropout.
Learning rates rise over {warmup} steps, hold, and fall to 0 over the last {decay} of the steps.

About {repeats} of the windows are a passage followed by itself, and in {shuffled} of those the passage's
tokens are shuffled, so that nothing but copying can predict them: that is what the induction heads learnt
from.

```sh
{commands}
```

### The curve

Nats per token; the validation loss is on a fixed sample of the held-out books and was only watched. The
training loss is the mean over the steps since the measurement before, repeated passages included.

`{sparkline}` validation loss, step {first_step} to {last_step}

{curve}

## Limits

- It knows nothing. Names, dates and places that it writes are made up.
- It reads and writes the English of 18th- to early-20th-century books, most of them fiction. Other
  languages, code, numbers and today's words fall into many short tokens, and it does poorly on them.
- The books hold the prejudices of their time: about women, servants, and peoples and religions other than
  their authors'. What the model writes may repeat them.
- It sees no further back than {context} tokens, and a story loses its thread long before that.
- It was shown repeated passages on purpose, so its induction heads are stronger than those of a model of
  this size that has only read books.
- What a head does on random tokens is not all that it does on a sentence.

## Licence

The weights, the tokenizer and this card are under the project's MIT licence. The books are in the public
domain in the United States; elsewhere some may not be. They are not part of the project.

## The books

{n_books} books in English, {characters} million characters.
{n_held_out} of them were kept out of all training, whole, and are marked.

{books}
"""

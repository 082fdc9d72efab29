"""The command line, end to end on a tiny corpus: tokenizer, model, export, evaluate, card."""

import hashlib
import json
import math
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file

import gptviz
from gptviz.analysis import jacobian_lens
from gptviz.training.__main__ import main, parser
from gptviz.training.card import write_card
from gptviz.training.corpus import split_books
from gptviz.training.evaluate import together
from gptviz.training.export import read_checkpoint
from tests.training.conftest import HELD_OUT

SIZES = ["--emb-dim", "32", "--n-heads", "2", "--n-layers", "2", "--context-length", "256"]
CHOICES = ["--batch-size", "4", "--stride", "64", "--warmup", "4", "--hidden-lr", "0.03"]
CHOICES += ["--validate-every", "10"]


@pytest.fixture(scope="module")
def made(corpus, tmp_path_factory):
    """A folder in which all five commands have been run, the training in two parts."""
    folder = tmp_path_factory.mktemp("made")
    places = ["--tokenizer", str(folder / "tokenizer"), "--work", str(folder / "work")]
    train = ["model", *corpus.options(), *places, *SIZES, *CHOICES, "--steps", "80"]
    main(
        ["tokenizer", *corpus.options(), "--vocab-size", "350", "--out", str(folder / "tokenizer")]
    )
    main([*train, "--stop-at", "10"])
    main(train)
    main(["export", "--work", str(folder / "work"), "--out", str(folder / "tiny")])
    evaluation = ["--json", str(folder / "evaluation.json")]
    main(["evaluate", *corpus.options(), "--model", str(folder / "tiny"), *evaluation])
    main([*card_command(folder), "--machine", "a kitchen table"])
    return folder


def card_command(folder, evaluation="evaluation.json"):
    return [
        *("card", "--model", str(folder / "tiny"), "--work", str(folder / "work")),
        *("--evaluation", str(folder / evaluation), "--out", str(folder / "MODEL_CARD.md")),
    ]


@pytest.fixture(scope="module")
def evaluation(made):
    return json.loads((made / "evaluation.json").read_text(encoding="utf-8"))


def test_the_model_loads_and_has_learnt(made):
    lm = gptviz.load(made / "tiny")
    assert (lm.config.vocab_size, lm.config.n_layers, lm.config.tie_embeddings) == (350, 2, True)
    curve = json.loads((made / "work" / "curve.json").read_text())
    assert [point["step"] for point in curve] == list(range(10, 90, 10))
    assert math.log(350) > curve[0]["validation"] > curve[-1]["validation"]
    assert lm.trace("the fox walked to")["attn", 1].shape[0] == 2


def test_held_out_books_are_scored_whole(corpus, made, evaluation):
    lm = gptviz.load(made / "tiny")
    _, held_out = split_books(corpus.books, HELD_OUT)
    scores = evaluation["held_out"]["books"]
    for book, score in zip(held_out, scores, strict=True):
        assert score["title"] == book.title
        assert score["bytes"] == len(book.text.encode())
        assert score["tokens"] == len(lm.encode(book.text))
    assert evaluation["held_out"]["together"] == together(scores)


def test_the_card_says_what_was_measured(corpus, made, evaluation):
    card = (made / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert not re.findall(r"\{[a-z_0-9]+\}", card)  # nothing left to fill in
    for book in corpus.books:
        line = f"- {book.author}, *{book.title}*, {book.year}"
        if book.title in HELD_OUT:
            line += " — **held out**"
        assert f"\n{line}\n" in card
    whole = evaluation["held_out"]["together"]
    for name in ("model", "model_sliding", "bigram", "unigram"):
        assert f"{whole['nats_per_token'][name]:.3f} / {whole['bits_per_byte'][name]:.3f}" in card
    induction = max(evaluation["heads"], key=lambda head: head["induction"])
    assert (
        f"{induction['induction']:.3f} (block {induction['block']}, head {induction['head']})"
        in card
    )
    words = (
        "a kitchen table",
        "80 steps of 4 windows",
        "--hidden-lr 0.03",
        "--steps 80",
        "MIT licence",
    )
    assert all(word in card for word in words)
    assert "--seed" not in card  # a default
    assert evaluation["weights"]["sha256"][:16] in card
    assert "A quick look" not in card


def test_the_cards_commands_are_commands(made):
    """Every line of the recipe parses: an option that is renamed must be renamed in the card."""
    text = (made / "MODEL_CARD.md").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [
        line.split()[3:]
        for line in text.splitlines()
        if line.startswith("python -m gptviz.training")
    ]
    assert (
        " ".join(line[0] for line in lines) == "evaluate tokenizer model export evaluate card heads"
    )
    parsed = [parser().parse_args(line) for line in lines]
    assert (parsed[2].steps, parsed[2].emb_dim, parsed[2].hidden_lr, parsed[2].stride) == (
        80,
        32,
        0.03,
        64,
    )


def test_a_card_is_never_of_other_weights(made, evaluation):
    other = evaluation | {"weights": evaluation["weights"] | {"sha256": "0" * 64}}
    (made / "other.json").write_text(json.dumps(other))
    with pytest.raises(ValueError, match="the evaluation is of other weights"):
        main(card_command(made, "other.json"))


def test_a_card_is_never_of_another_step_of_the_run(made, evaluation, tmp_path):
    later = torch.load(made / "work" / "checkpoint.pt", weights_only=True)
    torch.save(later | {"step": 90}, tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match=r"holds step 80, the checkpoint in .* is at 90"):
        write_card(made / "tiny", tmp_path, evaluation)


def test_a_quick_look_says_so(corpus, made, capsys):
    quick = made / "quick.json"
    options = ["--model", str(made / "tiny"), "--limit", "40", "--json", str(quick)]
    main(["evaluate", *corpus.options(), *options])
    shown = capsys.readouterr().out
    held_out = json.loads(quick.read_text(encoding="utf-8"))["held_out"]
    assert held_out["together"]["tokens"] == 40 * len(HELD_OUT) and held_out["limit"] == 40
    assert json.loads(shown)["held_out"] == held_out and "Once upon a time" in shown
    main(card_command(made, "quick.json"))
    assert "only the first 40 tokens of each book" in (made / "MODEL_CARD.md").read_text(
        encoding="utf-8"
    )


def test_a_run_on_books_and_the_small_world_goes_on_from_other_weights(
    corpus, made, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("gptviz.training.corpus.WORLD_PART", 300)
    places = ["--tokenizer", str(made / "tokenizer"), "--work", str(tmp_path / "work")]
    model = ["model", *corpus.options(), *places, *SIZES, *CHOICES]
    with pytest.raises(FileNotFoundError, match=r"run `python -m gptviz.training world --work"):
        main([*model, "--world-share", "0.5", "--steps", "2"])

    main(["world", *places, "--parts", "2", "--processes", "1"])
    assert "600 passages" in capsys.readouterr().out
    mixed = ["--world-share", "0.5", "--world-noise", "0.2", "--world-repeat-share", "0.3"]
    goes_on = [*model, *mixed, "--begin-with", str(made / "tiny"), "--minutes", "0.01"]
    main(goes_on)
    assert "steps in 0.01 minutes" in capsys.readouterr().out
    saved = read_checkpoint(tmp_path / "work")
    main(goes_on)  # all the steps that fitted have been taken
    assert read_checkpoint(tmp_path / "work")["step"] == saved["step"]

    sha256 = hashlib.sha256((made / "tiny" / "model.safetensors").read_bytes()).hexdigest()
    assert saved["recipe"]["begun_with"] == sha256
    assert saved["step"] == saved["recipe"]["steps"] >= 60
    # it begins where the other run ended, and not at a guess
    assert saved["curve"][0]["train"] < math.log(350) - 1
    main(["export", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "tiny")])
    evaluation = tmp_path / "evaluation.json"
    main(
        [
            "evaluate",
            *corpus.options(),
            "--model",
            str(tmp_path / "tiny"),
            "--json",
            str(evaluation),
        ]
    )
    card = write_card(tmp_path / "tiny", tmp_path / "work", json.loads(evaluation.read_text()))
    for said in (
        "50% of the windows are passages of a small world",
        "up to 20% of the inputs",
        "About 30% of these begin with a passage that is said twice or three times.",
        sha256[:16],
    ):
        assert said in card
    assert (
        card.startswith('# The bundled model "tiny"\n') and "with bf16 autocast. Learning" in card
    )
    assert "--out gptviz/assets/tiny\n" in card
    told = {"evaluation": json.loads(evaluation.read_text()), "made_by": "./make_it.sh\n"}
    by_hand = write_card(tmp_path / "tiny", tmp_path / "work", **told)
    assert "```sh\n./make_it.sh\n```" in by_hand and "training export --work work" not in by_hand
    assert "python -m gptviz.training world --tokenizer tokenizer --work work" in card
    assert (
        "--world-share 0.5 --world-noise 0.2 --world-repeat-share 0.3 --begin-with before" in card
    )

    (tmp_path / "prompts.tsv").write_text(
        "kind\tprompt\tright\twrong\nanimals\tA fox is\tred\t\nanimals\tWho runs?\tfox\t\n"
    )
    (tmp_path / "names.tsv").write_text("sentence\tright\twrong\nTom saw\tAnn\tTom\n")
    exam = tmp_path / "exam.json"
    tiny = ["--model", str(tmp_path / "tiny")]
    main(["examine", *tiny, "--exam", str(tmp_path), "--json", str(exam)])
    examined = json.loads(exam.read_text())
    assert [kind["prompts"] for kind in examined["kinds"]] == [2, 2]
    main(
        [
            *("card", *tiny, "--work", str(tmp_path / "work"), "--evaluation", str(evaluation)),
            *("--before", str(made / "work"), "--examination", str(exam)),
            *("--out", str(tmp_path / "MODEL_CARD.md")),
        ]
    )
    card = (tmp_path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "80 steps of 4 windows of 256 tokens of books:" in card
    assert f"{saved['step']} steps of 4 windows of 256 tokens of books and the small world:" in card
    assert f"| animals | 2 | {examined['kinds'][0]['correct']} |" in card
    assert "of 1 sentences" in card
    assert "--work run1 --compile" in card and "--begin-with run1/exported" in card
    text = card.replace("\\\n", " ")
    commands = [line.split()[3:] for line in text.splitlines() if line.startswith("python -m")]
    for command in commands:
        parser().parse_args(command)
    named = "tokenizer model export world model export evaluate examine card heads"
    assert " ".join(command[0] for command in commands[1:]) == named


def test_two_commands_make_the_whole_model_and_go_on_where_they_were_cut_off(
    corpus, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("gptviz.training.corpus.WORLD_PART", 300)
    out = tmp_path / "out"
    work = tmp_path / "work"
    train = ["mini", *corpus.options(), "--work", str(work), "--out", str(out), "--trial"]
    main(train)
    books, both = (read_checkpoint(out / name) for name in ("books", "both"))
    assert both["step"] == both["recipe"]["steps"] and both["recipe"]["world_share"] == 0.6
    of_books = (work / "books" / "exported" / "model.safetensors").read_bytes()
    assert both["recipe"]["begun_with"] == hashlib.sha256(of_books).hexdigest()
    assert books["recipe"]["world_share"] == 0 and "model" not in both
    assert sum(file.stat().st_size for file in (out / "both").iterdir()) < 100_000

    # cut off while it exported: nothing is trained, and the rest is made again
    weights = out / "mini" / "model.safetensors"
    first = load_file(weights)
    weights.unlink()
    capsys.readouterr()
    main(train)
    again = load_file(weights)
    assert all(torch.equal(again[name], first[name]) for name in first)
    assert f"{work / 'tokenizer.tiktoken'} is there" in capsys.readouterr().out

    exam = tmp_path / "exam"
    exam.mkdir()
    (exam / "prompts.tsv").write_text("kind\tprompt\tright\twrong\nanimals\tA fox is\tred\t\n")
    (exam / "names.tsv").write_text("sentence\tright\twrong\nTom saw\tAnn\tTom\n")
    shutil.rmtree(work)  # it stayed on the other machine
    measure = ["measure", *corpus.options(), "--out", str(out), "--exam", str(exam), "--trial"]
    main([*measure, "--machine", "a kitchen table"])
    lm = gptviz.load(out / "mini")
    assert jacobian_lens.load(lm, out / "mini" / "jacobian_lens.safetensors").texts == 2
    card = (out / "mini" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card.startswith('# The bundled model "mini"\n')
    for said in ("a kitchen table", "| animals | 1 |", "60% of the windows", "--work run1"):
        assert said in card
    assert json.loads((out / "mini" / "heads.json").read_text(encoding="utf-8"))

"""The tree of branches that an address tells: what it holds, how it grows, and what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gptviz.ui.parts.generate.tree import (
    LONGEST,
    MOST,
    Branch,
    Tree,
    fork,
    forward,
    looking_at,
    on_branch,
    parse,
)
from gptviz.ui.shell.sampling import name_of, written

NAME = name_of([1, 2, 3])


@given(
    st.lists(
        st.tuples(st.sampled_from(["fork", "back", "on", "go", "look"]), st.integers(0, 9)),
        max_size=40,
    )
)
def test_whatever_is_done_an_address_tells_it_again(actions):
    tree = Tree(name=NAME)
    for action, number in actions:
        if action == "fork" and len(tree.branches) < MOST:
            tree = fork(tree, min(number, tree.length), 40 + number)
        elif action == "back":
            tree = looking_at(tree, tree.chosen(tree.length) - 1)
        elif action == "on":
            tree = forward(tree, tree.length, ended=False)
        elif action == "go":
            tree = on_branch(tree, number % len(tree.branches))
        elif action == "look":
            tree = looking_at(tree, number)
        assert parse(str(tree), NAME, 8192) == tree
        assert 0 <= tree.chosen(tree.length) <= tree.length
        put = tree.put(tree.branch)
        own = tree.branches[tree.branch]
        assert own.parent is None or put[own.at] == own.token
        assert all(at < tree.length for at in put)
    assert len(str(tree)) < 300


def test_a_fork_hangs_on_the_branch_that_wrote_the_step():
    tree = Tree((Branch(6),), step=3, name=NAME)
    tree = fork(tree, 3, 70)
    assert tree.branches == (Branch(6), Branch(4, 0, 3, 70)) and (tree.branch, tree.step) == (1, 3)
    tree = forward(tree, 4, ended=False)
    assert tree.branches[1].length == 5 and tree.step == 4
    early = fork(tree, 1, 80)  # before it left the first branch
    assert early.branches[2] == Branch(2, 0, 1, 80) and early.put(2) == {1: 80}
    late = fork(tree, 4, 90)
    assert late.branches[2] == Branch(5, 1, 4, 90) and late.put(2) == {3: 70, 4: 90}
    beside = fork(tree, 3, 71)  # another token at the same place
    assert beside.branches[2] == Branch(4, 0, 3, 71) and beside.put(2) == {3: 71}
    assert fork(beside, 3, 70).branch == 1  # which is there already
    assert fork(replace(beside, branch=0), 3, 71).branch == 2
    with pytest.raises(ValueError, match=f"{MOST} branches"):
        for token in range(MOST):
            tree = fork(tree, 3, token)


def test_a_fork_where_nothing_stands_yet_lets_the_drawn_token_stand_beside_it():
    tree = fork(Tree((Branch(2),), step=2, name=NAME), 2, 70)
    assert tree.branches == (Branch(3), Branch(3, 0, 2, 70))


def test_steps_go_on_and_stop():
    tree = Tree((Branch(3),), step=0, name=NAME)
    seen = [tree := forward(tree, 3, ended=True) for _ in range(4)]
    assert [one.step for one in seen] == [1, 2, 2, 2] and seen[-1].length == 3
    assert looking_at(seen[0], -1).step == 0 and looking_at(seen[0], 9).step == 3
    full = Tree((Branch(LONGEST),), name=NAME)
    assert forward(full, LONGEST, ended=False).length == LONGEST


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "x",
            "20_0_0_ffffff",
            "-",
            "2-0.5.7.9",
            "9-0.2.9999.5",
            "9-0.2.7.2",
            "9-1.2.7.4",
            "9_1",
            "9-a",
        ),
        *("9-0.2.7.5-1.2.8.5", "9_0_0_" + NAME + "_", "9-0.2.7.999999999", "²", "9" * 30),
        written(20, [1, 2]),  # another text's
    ],
)
def test_what_makes_no_sense_is_an_empty_tree(text):
    assert parse(text, NAME, 8192) == Tree(name=NAME)


def test_a_number_alone_is_meant_for_any_text_and_another_page_says_which_it_means():
    for text in ("20", written(20, [1, 2, 3])):
        assert parse(text, NAME, 8192) == Tree((Branch(20),), name=NAME)
    assert parse("9999", NAME, 8192).length == LONGEST

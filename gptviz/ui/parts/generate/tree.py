"""The branches of a text that is being written, and which token is looked at: what an address has to say.

The draws can be made again from the seed, so that a branch is no more than where it left which other
branch, with which token, and how long it is.
"""

import re
from dataclasses import dataclass, replace

LONGEST = 256  # tokens of a branch
MOST = 16  # branches
# length of the first branch, the forks, which branch, which step, of which prompt
N = "[0-9]{1,9}"
FORM = re.compile(f"({N})((?:-{N}\\.{N}\\.{N}\\.{N})*)(?:_({N})?(?:_({N})?(?:_(.*))?)?)?")


@dataclass(frozen=True)
class Branch:
    """`length` tokens after the prompt; the first `at` of them are `parent`'s, then comes `token`.

    The first branch has no parent, and no token that a person chose.
    """

    length: int
    parent: int | None = None
    at: int = 0
    token: int | None = None


@dataclass(frozen=True)
class Tree:
    """Branches, the one on the screen, and the step of it that is looked at (None: the last one written).

    `name` tells the prompt that it grew from: for another text it is not meant. Made by `parse`, `EMPTY` and
    the functions here, which keep it possible; `str` is the form that `parse` reads.
    """

    branches: tuple[Branch, ...] = (Branch(0),)
    branch: int = 0
    step: int | None = None
    name: str = ""

    def __str__(self) -> str:
        first, *others = self.branches
        forks = [f"{fork.parent}.{fork.at}.{fork.token}.{fork.length}" for fork in others]
        if self.step is None:
            step = ""
        else:
            step = str(self.step)
        return "_".join(["-".join([str(first.length), *forks]), str(self.branch), step, self.name])

    @property
    def length(self) -> int:
        """The number of tokens of the branch on the screen."""
        return self.branches[self.branch].length

    def chosen(self, written: int) -> int:
        """The step that is looked at, where `written` of the branch's steps came about."""
        if self.step is None:
            return max(0, written - 1)
        return min(self.step, written)

    def put(self, branch: int) -> dict[int, int]:
        """The tokens that a person put into this branch, by their step."""
        found: dict[int, int] = {}
        fork = self.branches[branch]
        while fork.parent is not None:
            found[fork.at] = fork.token or 0
            fork = self.branches[fork.parent]
        return found

    def owner(self, branch: int, step: int) -> int:
        """The branch that wrote this step by itself: this one, or one that it shares its beginning with."""
        here = self.branches[branch]
        while here.parent is not None and step <= here.at:
            branch = here.parent
            here = self.branches[branch]
        return branch


def parse(text: str, name: str, vocabulary: int) -> Tree:
    """The tree that an address tells, for the prompt called `name`; an empty one where it is of another.

    A mere number, "20", is meant for any prompt. What makes no sense is an empty tree.
    """
    empty = Tree(name=name)
    said = FORM.fullmatch(text)
    if said is None or said[5] not in (None, name):
        return empty
    branches = [Branch(min(int(said[1]), LONGEST))]
    for numbers in said[2].split("-")[1:]:
        parent, at, token, size = map(int, numbers.split("."))
        if parent >= len(branches) or token >= vocabulary or not at < size <= LONGEST:
            return empty
        first = branches[parent].at + 1 if parent else 0  # that the parent wrote by itself
        if not first <= at < branches[parent].length:
            return empty
        branches.append(Branch(size, parent, at, token))
    branch = int(said[3] or 0)
    if branch >= len(branches) or len(branches) > MOST:
        return empty
    return Tree(tuple(branches), branch, int(said[4]) if said[4] else None, name)


def looking_at(tree: Tree, step: int) -> Tree:
    return replace(tree, step=max(0, min(step, tree.length)))


def on_branch(tree: Tree, branch: int) -> Tree:
    """Another branch on the screen: the step at which it left its parent."""
    if not 0 <= branch < len(tree.branches):
        raise ValueError(f"there is no branch {branch} among {len(tree.branches)}")
    return replace(tree, branch=branch, step=tree.branches[branch].at if branch else None)


def forward(tree: Tree, written: int, ended: bool) -> Tree:
    """One step on: the next token that is written already, or else a new one.

    `written` of the branch's steps came about; `ended` says that no other can follow.
    """
    at = tree.chosen(written)
    if at + 1 < written:
        return looking_at(tree, at + 1)
    if ended or written >= LONGEST:
        return looking_at(tree, max(0, written - 1))
    return _long(tree, tree.branch, written + 1, step=written)


def fork(tree: Tree, step: int, token: int) -> Tree:
    """`token` at this step instead of the one that stands there, on a branch of its own.

    Where there is one already, it is that one. Raises ValueError where there are too many branches.
    """
    owner = tree.owner(tree.branch, step)
    for number, branch in enumerate(tree.branches):
        if branch.parent == owner and (branch.at, branch.token) == (step, token):
            return replace(tree, branch=number, step=step)
    if len(tree.branches) >= MOST:
        raise ValueError(f"there are {MOST} branches already: take them all back, and begin again")
    new = Branch(step + 1, owner, step, token)
    if tree.branches[owner].length <= step:  # nothing stands there yet: the parent's next token comes about
        tree = _long(tree, owner, step + 1, step)
    return replace(tree, branches=(*tree.branches, new), branch=len(tree.branches), step=step)


def _long(tree: Tree, branch: int, length: int, step: int) -> Tree:
    longer = replace(tree.branches[branch], length=length)
    branches = (*tree.branches[:branch], longer, *tree.branches[branch + 1 :])
    return replace(tree, branches=branches, step=step)

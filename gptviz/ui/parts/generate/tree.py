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

    The first branch has no parent, and no token that the visitor chose.
    """

    length: int
    parent: int | None = None
    at: int = 0
    token: int | None = None


@dataclass(frozen=True)
class Tree:
    """Branches, the one on the screen, and the step of it that is looked at (None: the last one written).

    `name` identifies the prompt that it grew from: it holds for no other. Made by `parse` and the
    functions here, which keep it possible; `str` is the form that `parse` reads.
    """

    branches: tuple[Branch, ...] = (Branch(0),)
    branch: int = 0
    step: int | None = None
    name: str = ""

    def __str__(self) -> str:
        first, *later_branches = self.branches
        forks = [f"{fork.parent}.{fork.at}.{fork.token}.{fork.length}" for fork in later_branches]
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
        """The step that is looked at, if `written` of the branch's steps exist."""
        if self.step is None:
            return max(0, written - 1)
        return min(self.step, written)

    def put(self, branch: int) -> dict[int, int]:
        """The tokens that the visitor put into this branch, by their step."""
        tokens: dict[int, int] = {}
        fork = self.branches[branch]
        while fork.parent is not None:
            tokens[fork.at] = fork.token or 0
            fork = self.branches[fork.parent]
        return tokens

    def owner(self, branch: int, step: int) -> int:
        """The branch that wrote this step by itself: this one, or one that it shares its beginning with."""
        current = self.branches[branch]
        while current.parent is not None and step <= current.at:
            branch = current.parent
            current = self.branches[branch]
        return branch


def parse(text: str, name: str, vocabulary: int) -> Tree:
    """The tree that an address holds, for the prompt called `name`; an empty tree if it is of another.

    A mere number, "20", holds for any prompt. What cannot be read gives an empty tree.
    """
    empty = Tree(name=name)
    match = FORM.fullmatch(text)
    if match is None or match[5] not in (None, name):
        return empty
    branches = [Branch(min(int(match[1]), LONGEST))]
    for numbers in match[2].split("-")[1:]:
        parent, step, token, size = map(int, numbers.split("."))
        if parent >= len(branches) or token >= vocabulary or not step < size <= LONGEST:
            return empty
        first = branches[parent].at + 1 if parent else 0  # that the parent wrote by itself
        if not first <= step < branches[parent].length:
            return empty
        branches.append(Branch(size, parent, step, token))
    branch = int(match[3] or 0)
    if branch >= len(branches) or len(branches) > MOST:
        return empty
    return Tree(tuple(branches), branch, int(match[4]) if match[4] else None, name)


def looking_at(tree: Tree, step: int) -> Tree:
    return replace(tree, step=max(0, min(step, tree.length)))


def on_branch(tree: Tree, branch: int) -> Tree:
    """Show another branch, at the step where it left its parent."""
    if not 0 <= branch < len(tree.branches):
        raise ValueError(f"there is no branch {branch} among {len(tree.branches)}")
    return replace(tree, branch=branch, step=tree.branches[branch].at if branch else None)


def forward(tree: Tree, written: int, ended: bool) -> Tree:
    """Go one step on: to the next token if it is written already, else to a new one.

    `written` of the branch's steps exist; `ended` says that no other can follow.
    """
    step = tree.chosen(written)
    if step + 1 < written:
        return looking_at(tree, step + 1)
    if ended or written >= LONGEST:
        return looking_at(tree, max(0, written - 1))
    return _long(tree, tree.branch, written + 1, step=written)


def fork(tree: Tree, step: int, token: int) -> Tree:
    """Put `token` at this step in place of the one there, on a branch of its own.

    If that branch exists, show it. Raises ValueError if there are too many branches.
    """
    owner = tree.owner(tree.branch, step)
    for number, branch in enumerate(tree.branches):
        if branch.parent == owner and (branch.at, branch.token) == (step, token):
            return replace(tree, branch=number, step=step)
    if len(tree.branches) >= MOST:
        raise ValueError(f"there are {MOST} branches already: take them all back, and begin again")
    new = Branch(step + 1, owner, step, token)
    # nothing stands there yet: the parent's next token comes about
    if tree.branches[owner].length <= step:
        tree = _long(tree, owner, step + 1, step)
    return replace(tree, branches=(*tree.branches, new), branch=len(tree.branches), step=step)


def _long(tree: Tree, branch: int, length: int, step: int) -> Tree:
    longer = replace(tree.branches[branch], length=length)
    branches = (*tree.branches[:branch], longer, *tree.branches[branch + 1 :])
    return replace(tree, branches=branches, step=step)

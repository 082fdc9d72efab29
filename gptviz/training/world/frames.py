"""What may stand before a passage, so that no wording is known by its first words."""

import random

OPENINGS = (
    "As you know,",
    "As everybody knows,",
    "As we all know,",
    "As I said,",
    "As the teacher told us,",
    "By the way,",
    "Children learn early that",
    "Did you hear? They say that",
    "Do not forget that",
    "Even a child knows that",
    "Every pupil knows that",
    "Everybody knows that",
    "For example,",
    "Grandmother used to say that",
    "Have you noticed that? Yes,",
    "He answered that",
    "He told us that",
    "I am quite sure that",
    "I believe that",
    "I can tell you that",
    "I have always known that",
    "I have heard that",
    "I have read that",
    "I know that",
    "I learned at school that",
    "I remember that",
    "I think",
    "I think that",
    "I wrote down that",
    "In fact,",
    "In my book it says that",
    "In our class we say that",
    "In short,",
    "In this lesson we learn that",
    "Indeed,",
    "It is a fact that",
    "It is known that",
    "It is no secret that",
    "It is said that",
    "It is true that",
    "It is well known that",
    "It says here that",
    "Last week we learned that",
    "Listen:",
    "Look,",
    "Maybe you know that",
    "Mother told me that",
    "My brother says that",
    "My friend thinks that",
    "My sister told me that",
    "My teacher says that",
    "My uncle once told me that",
    "Naturally,",
    "Never forget that",
    "No doubt",
    "No,",
    "Nobody doubts that",
    "Now I know that",
    "Now listen:",
    "Of course",
    "Of course,",
    "On this page we read that",
    "One thing is certain:",
    "One thing is clear:",
    "People say that",
    "Perhaps you know that",
    "Please remember that",
    "Remember that",
    "Remember:",
    "She explained that",
    "She said that",
    "So",
    "Surely",
    "The answer is easy:",
    "The book tells us that",
    "The newspaper says that",
    "The old man told us that",
    "The teacher explained that",
    "The truth is that",
    "Then I learned that",
    "There is no doubt that",
    "They told me that",
    "This is what I know:",
    "Today I learned that",
    "Today we read that",
    "We all know that",
    "We are told that",
    "We have learned that",
    "We know that",
    "Well,",
    "What we know is that",
    "Yes,",
    "Yes, of course:",
    "You can see that",
    "You know that",
    "You may know that",
    "You must know that",
    "You see,",
)
# the kinds whose statements are true wherever they stand
OF_FACTS = {
    "agreement",
    "animals",
    "calendar",
    "capitals",
    "colours",
    "countries",
    "differences",
    "family",
    "foods",
    "jobs",
    "knowledge",
    "opposites",
    "sums",
}
# the kinds that stand by themselves: a text of their own, or a row of numbers
ALONE = {
    "dialogues",
    "fact_scenes",
    "letters",
    "lists",
    "plain",
    "runs",
    "scenes",
    "short_stories",
    "stories",
}
# words that begin a sentence with a capital and have none within one
SMALL_WITHIN = set(
    "A After All An At Before Between Both By Each Every For From He If In It Its Many Most My No Nobody On "
    "One Our People She Some That The Their There These They This Those Two We What When Where Whoever With "
    "Without You Your".split()
)
# ways to write the same, of which people use both
WRITTEN_ALSO = (
    ("It is ", "It's "),
    ("it is ", "it's "),
    ("do not ", "don't "),
    ("does not ", "doesn't "),
    ("did not ", "didn't "),
    ("is not ", "isn't "),
    ("are not ", "aren't "),
    ("was not ", "wasn't "),
    ("were not ", "weren't "),
    ("cannot ", "can't "),
    ("could not ", "couldn't "),
    ("would not ", "wouldn't "),
    ("has not ", "hasn't "),
    ("have not ", "haven't "),
    ("will not ", "won't "),
    ("I am ", "I'm "),
    ("we are ", "we're "),
    ("We are ", "We're "),
    ("they are ", "they're "),
    ("They are ", "They're "),
    ("you are ", "you're "),
    ("You are ", "You're "),
    ("that is ", "that's "),
    ("That is ", "That's "),
    ("there is ", "there's "),
    ("There is ", "There's "),
    ("What is ", "What's "),
    ("let us ", "let's "),
    ("Let us ", "Let's "),
    ("Mother ", "Mum "),
    ("Father ", "Dad "),
    ("Grandmother ", "Grandma "),
    ("Grandfather ", "Grandpa "),
    ("colour", "color"),
    ("favourite", "favorite"),
    ("neighbour", "neighbor"),
    ("grey", "gray"),
)
OPENED = 0.3  # of the statements
SET = 0.25  # of the passages
WRITTEN_OTHERWISE = 0.15  # of the passages, for each way of writing


def framed(text: str, kind: str, settings: list[str], chance: random.Random) -> str:
    """The passage, now and then after an opening, or after sentences that have nothing to do with it."""
    if kind in ALONE:
        return text
    if kind in OF_FACTS and chance.random() < OPENED and is_statement(text):
        text = f"{chance.choice(OPENINGS)} {small_within(text)}"
    if settings and chance.random() < SET:
        before = chance.choices(settings, k=chance.choice((1, 1, 2)))
        text = " ".join([*before, text])
    return text


def written_otherwise(text: str, chance: random.Random) -> str:
    """The text with some of its words written in the other way: "do not" becomes "don't"."""
    for written, also in WRITTEN_ALSO:
        if written in text and chance.random() < WRITTEN_OTHERWISE:
            text = text.replace(written, also)
    return text


def is_statement(text: str) -> bool:
    """Whether the passage begins with a plain statement: no question, no speech, no sum in signs."""
    first = text.split(". ")[0]
    return text[0].isupper() and not any(sign in first for sign in '?!":=')


def small_within(sentence: str) -> str:
    """The sentence as it stands behind an opening: "The sky" becomes "the sky", "Paris" stays."""
    first = sentence.split(" ")[0]
    if first in SMALL_WITHIN:
        return first.lower() + sentence[len(first) :]
    return sentence

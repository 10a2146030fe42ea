"""Tokens of C, read one after the other."""

from __future__ import annotations

from typing import NoReturn

from .tokens import Token, is_word, tokens_of

_TYPE_OPERATORS = ("_Atomic", "typeof", "__typeof__", "__typeof", "typeof_unqual")
_BRACKETS = {"(": ")", "{": "}", "[": "]"}


class CSyntaxError(Exception):
    """Text that is not a declaration; `position` is the offset of the token that shows this."""

    def __init__(self, what: str, position: int) -> None:
        super().__init__(what)
        self.position = position


def _flat(tokens: list[Token]) -> list[Token]:
    """Write ``_Atomic(long)`` and ``typeof(struct s)`` as the words in parentheses."""
    made: list[Token] = []
    for token in tokens:
        made.append(token)
        if token.text == ")" and made[0].text != ")":
            start = next(i for i in range(len(made) - 1, -1, -1) if made[i].text == "(" or not i)
            words = made[start + 1 : -1]
            before = made[start - 1].text if start else ""
            if before in _TYPE_OPERATORS and all(is_word(word.text) for word in words):
                made[start - (before != "_Atomic") :] = words
    return made


class TokenReader:
    """The place in a text that is read."""

    def __init__(self, text: str) -> None:
        self.tokens = [*_flat(tokens_of(text)), Token("", len(text))]
        self.index = 0

    @property
    def next(self) -> str:
        return self.tokens[self.index].text

    def refuse(self, what: str = "") -> NoReturn:
        raise CSyntaxError(what, self.tokens[self.index].position)

    def take(self) -> str:
        self.index += 1
        return self.tokens[self.index - 1].text

    def balanced(self) -> list[str]:
        """Take what is in brackets, and return the tokens inside."""
        opening, start, depth = self.take(), self.index, 1
        while depth:
            if not self.next:
                self.refuse()
            token = self.take()
            depth += (token == opening) - (token == _BRACKETS[opening])
        return [token.text for token in self.tokens[start : self.index - 1]]

    def value(self) -> list[str]:
        """Take the tokens of an initialiser, or of the width of a bit-field."""
        start = self.index
        while self.next and self.next not in ",;}":
            if self.next in _BRACKETS:
                self.balanced()
            else:
                self.take()
        return [token.text for token in self.tokens[start : self.index]]

"""Tokens of C, read one after the other."""

from __future__ import annotations

from typing import NoReturn

from .tokens import RESERVED, TYPEOF, Token, is_word, tokens_of

_TYPE_OPERATORS = ("_Atomic", "typeof", "__typeof__", "__typeof", "typeof_unqual")
_BRACKETS = {"(": ")", "{": "}", "[": "]"}


class CSyntaxError(Exception):
    """Text that is not a declaration; `position` is the offset of the token that shows this."""

    def __init__(self, what: str, position: int) -> None:
        super().__init__(what)
        self.position = position


def _flat(tokens: list[Token]) -> list[Token]:
    """Write ``_Atomic(long)`` and ``typeof(struct s)`` as the words in parentheses.

    ``typeof`` of an expression becomes one token, ``typeof(x + 1)``.
    """
    made: list[Token] = []
    opened: list[int] = []
    for token in tokens:
        if token.text == "(":
            opened.append(len(made))
        made.append(token)
        start = opened.pop() if token.text == ")" and opened else 0
        before = made[start - 1].text if start else ""
        if before not in _TYPE_OPERATORS:
            continue
        words = made[start + 1 : -1]
        is_name = len(words) == 1 and words[0].text not in RESERVED
        if all(is_word(word.text) for word in words) and (before == "_Atomic" or not is_name):
            made[start - (before != "_Atomic") :] = words
        elif before != "_Atomic":
            text = " ".join(word.text for word in words).replace("- >", "->")
            made[start - 1 :] = [Token(f"{TYPEOF}{text})", made[start - 1].position)]
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

"""Tokens of C, read one after the other."""

from __future__ import annotations

from typing import NoReturn

from .tokens import Token, tokens_of

DEEPEST = 60


class CSyntaxError(Exception):
    """Text that is no declaration; `position` is the offset of the token where this is found."""

    def __init__(self, what: str, position: int) -> None:
        super().__init__(what)
        self.position = position


class TokenReader:
    """The place in a text that is read, and the depth of what is nested there."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.tokens.append(Token("", len(text)))
        self.index = 0
        self.depth = 0

    @property
    def next(self) -> str:
        return self.tokens[self.index].text

    def refuse(self, what: str = "") -> NoReturn:
        raise CSyntaxError(what, self.tokens[self.index].position)

    def take(self) -> str:
        self.index += 1
        return self.tokens[self.index - 1].text

    def accept(self, text: str) -> bool:
        found = self.next == text
        self.index += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.refuse(f"expected {text}")

    def end(self) -> None:
        if self.next:
            self.refuse()

    def balanced(self, opening: str, closing: str) -> tuple[str, ...]:
        """Take tokens in brackets, and return those inside."""
        self.expect(opening)
        start, depth = self.index, 1
        while depth:
            token = self.take()
            if not token:
                self.index -= 1
                self.refuse()
            depth += (token == opening) - (token == closing)
        return tuple(token.text for token in self.tokens[start : self.index - 1])

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse("nested too deep")

"""Keep the notes of other packages about their own parts from the terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def quiet(*packages: str) -> Iterator[None]:
    """Let the loggers of packages report errors alone, and no warnings."""
    with ExitStack() as stack:
        for package in packages:
            logger = logging.getLogger(package)
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        yield

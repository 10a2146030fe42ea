"""Modules that host code imports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import runtime

from .paths import C_SOURCES

HOST = C_SOURCES / "host.c"


class Functions(runtime.Module):
    """A module of Python functions that counts how often it is asked."""

    type_key = "functions"

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.functions = functions
        self.asked: list[str] = []

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """One of the functions that it was made of."""
        self.asked.append(name)
        return self.functions.get(name)

    def function_names(self) -> list[str]:
        """Their names."""
        return list(self.functions)


def importing(host: runtime.Module, **functions: Callable[..., Any]) -> Functions:
    """Let the library import a module of these functions."""
    module = Functions(**functions)
    host.import_module(module)
    return module

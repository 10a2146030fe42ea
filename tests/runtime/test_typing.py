"""The types for annotations exist at run time too."""

from __future__ import annotations

import subprocess
import sys
import typing

import runtime
import runtime.typing

from ..support.command_line import done


def test_types_can_be_evaluated() -> None:
    """Annotations of a program that are not text, and unions with None."""
    for name in runtime.typing.__all__:
        assert typing.get_args(getattr(runtime.typing, name) | None)
    assert runtime.typing.VoidHandle is runtime.Handle


def test_a_load_does_not_import_them() -> None:
    """Neither this file nor Python's typing: both make a start slower."""
    code = "import runtime, sys; print({'typing', 'runtime.typing'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done(run) == "set()\n"

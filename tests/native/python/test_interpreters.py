"""The core works in the main interpreter and refuses the others, with a reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import runtime

# Python has had three spellings of this; the interpreter writes its result to a file.
IN_ANOTHER = """
import sys
inside = '''
try:
    import runtime
    text = "imported"
except ImportError as error:
    text = str(error)
with open({found!r}, "w") as file:
    file.write(text)
'''
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
isolated = {isolated}
if sys.version_info >= (3, 13):
    interpreters.exec(interpreters.create("isolated" if isolated else "legacy"), inside)
else:
    interpreters.run_string(interpreters.create(isolated=isolated), inside)
import runtime
print(runtime.load({library!r}).type_key)
"""
OURS = (
    "runtime._core: expected the main interpreter, found a subinterpreter; load libraries in the "
    "main interpreter or in a separate process"
)
# From 3.12 on CPython itself refuses an interpreter that has a separate GIL.
CPYTHONS = "module runtime._core does not support loading in subinterpreters"


@pytest.mark.parametrize("isolated", [False, True])
def test_subinterpreter_is_refused(isolated, compile_library, tmp_path) -> None:
    """An ImportError states the fix, and the main interpreter is unaffected."""
    library = str(compile_library("int any;"))
    found = tmp_path / "found.txt"
    code = IN_ANOTHER.format(found=str(found), isolated=isolated, library=library)
    environment = {**os.environ, "PYTHONPATH": str(Path(runtime.__file__).parent.parent)}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "library\n", "")
    assert found.read_text() in ({OURS, CPYTHONS} if isolated else {OURS})

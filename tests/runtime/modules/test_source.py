"""Host code that a blob carries as source or as an archive."""

from __future__ import annotations

import pytest

import runtime

from ...support.process import run_python

CARRIED = [
    runtime.CarriedSourceModule("int f(void) { return 1; }", "c", ["f"]),
    runtime.CarriedStaticLibraryModule(b"!<arch>\n", ["f"]),
]


@pytest.mark.parametrize("module", CARRIED, ids=lambda module: module.type_key)
def test_carried_host_code_is_never_compiled(module: runtime.Module) -> None:
    """Its source is restored as a module that cannot run, and no process is started for it."""
    code = """
import json, sys
events = []
sys.addaudithook(lambda event, _: events.append(event))
import runtime
module = runtime.deserialize_module_from_bytes(bytes.fromhex(sys.argv[1]))
try:
    module["f"]
except runtime.FunctionNotFoundError as error:
    text = str(error)
starts = ("subprocess.", "os.posix_spawn", "os.exec", "os.fork", "os.system")
started = [event for event in events if event.startswith(starts)]
print(json.dumps([module.is_runnable, text, started]))
"""
    data = runtime.serialize_module_to_bytes(module, export_dso=False)
    is_runnable, text, started = run_python(code, data.hex())
    assert (is_runnable, started) == (False, [])
    assert "carries it, but cannot run here" in text

"""A library and kernels whose page tests read."""

from __future__ import annotations

import runtime

HOSTILE_DOC = "</script><script>document.title = 'owned'</script>\n\u202etxet <!-- <b>bold</b>"
HOSTILE_NAME = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def kernels(type_key: str, name: str, source: str = "// text") -> runtime.DeviceModule:
    """A device module with one kernel."""
    kernel = runtime.FunctionInfo(name, ["handle"], ["blockIdx.x"])
    return runtime.DeviceModule(type_key, source, "ptx", [kernel])

"""A tree for outputs that are linked later."""

from __future__ import annotations

import packer
import runtime

CALL = (
    "import json, runtime, sys\n"
    "m = runtime.load(sys.argv[1])\n"
    "print(json.dumps([m(40, 2), [i.type_key for i in m.imported_modules]]))"
)


def tree(payload: bytes = b".version 7.0") -> packer.CSourceModule:
    """Host code that imports a device module."""
    root = packer.CSourceModule(
        "long twice(long a) { return 2 * a; }\nlong add(long a, long b) { return a + b; }",
        functions={"add": "long(long a, long b)"},
    )
    root.import_module(runtime.DeviceModule("cuda", payload, "ptx", []))
    return root

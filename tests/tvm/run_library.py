"""Make the calls of one library with our runtime alone: ``run_library.py LIBRARY NAME OUTCOMES``.

Nothing of TVM can be imported here, and none is mapped at the end.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from calls import CALLS, Call, Told, outcomes


class Blocked:
    """An import hook in front of all others."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse TVM."""
        if name.split(".")[0] in ("tvm", "tvm_ffi"):
            raise ImportError(f"{name} is blocked")


def pass_array(array: Any, call: Call) -> Any:
    """Return a tensor on the device for a call that runs there."""
    import runtime

    return runtime.tensor(array, runtime.Device("opencl", 0)) if call.is_kernel else array


def main(path: str, name: str, to: str) -> None:
    """Run the calls and store their outcomes."""
    import runtime

    told = Told()
    runtime.register_func("test.told")(told)
    made = outcomes(CALLS[name], runtime.load(path), pass_array, told)
    assert "libtvm" not in Path("/proc/self/maps").read_text()
    Path(to).write_bytes(pickle.dumps(made))


sys.meta_path.insert(0, Blocked())
main(*sys.argv[1:])

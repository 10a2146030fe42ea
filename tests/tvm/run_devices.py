"""Run a model on two devices, with our runtime alone: ``run_devices.py MODEL DEVICE NAME FILE``."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

for blocked in ("tvm", "tvm_ffi"):
    sys.modules[blocked] = None  # type: ignore[assignment]


def main(path: str, second: str, name: str, output: str) -> None:
    """Store the devices of the results, and the results."""
    from devices import inputs

    import runtime
    from runtime.relax.vm import VirtualMachine

    machine = VirtualMachine(runtime.load(path), ["cpu", second])
    result = machine["main"](*inputs(name))
    results = result if isinstance(result, tuple) else (result,)
    found = [(str(tensor.device), tensor.numpy()) for tensor in results]
    Path(output).write_bytes(pickle.dumps(found))
    assert "libtvm" not in Path("/proc/self/maps").read_text()


main(*sys.argv[1:])

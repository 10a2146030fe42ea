"""Make the calls of models with our runtime alone: ``run_model.py FOLDER``.

Nothing of TVM can be imported here, and none is mapped at the end.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

for blocked in ("tvm", "tvm_ffi"):
    sys.modules[blocked] = None  # type: ignore[assignment]


def read_value(value: Any) -> Any:
    """As NumPy and Python have it."""
    if isinstance(value, tuple):
        return tuple(map(read_value, value))
    return value.numpy() if hasattr(value, "numpy") else value


class OnDevice:
    """The functions of a model on a device, called with arrays of the CPU."""

    def __init__(self, model: Any, device: str) -> None:
        from runtime.relax.vm import VirtualMachine

        self.machine = VirtualMachine(model, device)

    def __getitem__(self, name: str) -> Any:
        """Set the inputs, run, and take the outputs."""

        def call(*args: Any) -> Any:
            self.machine.set_input(name, *args)
            self.machine.invoke_stateful(name)
            return self.machine.get_outputs(name)

        return call


def main(folder: Path) -> None:
    """Run all of them, and store the outcomes of the calls, and the bytecode as text."""
    from model_calls import CALLS, outcomes

    import runtime

    for path in sorted(folder.glob("*.so")):
        target, _, name = path.stem.partition("_")
        assert name in CALLS
        model = runtime.load(path)
        functions = OnDevice(model, target) if target == "opencl" else model
        made = outcomes(name, functions, lambda value: value, read_value)
        path.with_suffix(".ours").write_bytes(pickle.dumps((made, model.get_source())))
    assert "libtvm" not in Path("/proc/self/maps").read_text()


main(Path(sys.argv[1]))

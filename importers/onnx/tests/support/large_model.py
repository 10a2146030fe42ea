"""A model of many weights, and the greatest memory of a process that exports it.

large_model.py MODEL OUTPUT: exports a model; prints the KiB that the process needs for it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WIDTH = 2048  # of a matrix of 16 MiB


def write_model(path: Path, nbytes: int, *, is_external: bool) -> None:
    """Write products of one row with matrices, and rows of a table, with weights of this size."""
    import numpy as np
    import onnx

    each = 4 * WIDTH * WIDTH
    shape = (WIDTH, WIDTH)
    data = path.with_name(f"{path.name}.data")
    graph = onnx.GraphProto(name="large")
    value, info = "row0", onnx.helper.make_tensor_value_info
    graph.node.append(onnx.helper.make_node("Gather", ["weight0", "ids"], [value]))
    with data.open("wb") as file:
        for index in range(nbytes // each):
            array = np.random.default_rng(index).random(shape, np.float32) / WIDTH
            tensor = graph.initializer.add(name=f"weight{index}", data_type=1, dims=shape)
            if is_external:
                tensor.data_location = 1
                tensor.external_data.add(key="location", value=data.name)
                tensor.external_data.add(key="offset", value=str(file.tell()))
                file.write(array.data)
            else:
                tensor.raw_data = array.tobytes()
            if index:
                inputs, value = [value, tensor.name], f"row{index}"
                node = onnx.helper.make_node("Gemm", inputs, [value], transB=index % 2)
                graph.node.append(node)
    graph.input.append(info("ids", onnx.TensorProto.INT64, [1]))
    graph.output.append(info(value, onnx.TensorProto.FLOAT, [1, WIDTH]))
    opset = onnx.helper.make_opsetid("", 23)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)
    path.write_bytes(model.SerializeToString())


def export_memory(model: Path, output: Path) -> int:
    """Return the bytes that a process needs at most to export a model, without its imports."""
    command = [sys.executable, __file__, model, output]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) << 10


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1])


if __name__ == "__main__":
    import onnx.reference  # noqa: F401 - an import, like the next ones
    import onnxscript.optimizer  # noqa: F401

    import packer

    before = _peak()
    packer.export_library(packer.from_onnx(sys.argv[1]), sys.argv[2])
    print(_peak() - before)

"""Programs that launch with the FAKE driver."""

from __future__ import annotations

from collections.abc import Callable

from ...support.cuda import DATA

PTX = DATA / "scale.ptx"
PARAMS = "8 4 4"  # the parameters of scale
Fake = Callable[..., tuple[list[str], list[str]]]
# Launch the kernel of a file; whatever is refused is printed. argv: file, format, tags, extents.
LAUNCH = """
import array, pathlib, sys
import runtime
from runtime import Device, DeviceModule, FunctionInfo

path, tags, *extents = sys.argv[1:]
info = FunctionInfo("scale", ["handle", "float32", "int32"], tags.split())
module = DeviceModule("cuda", pathlib.Path(path).read_bytes(), "cubin", [info])
try:
    x = runtime.tensor(array.array("f", range(8)), Device("cuda", 0))
    module["scale"](x, 2.5, 8, *map(int, extents))
    print("launched")
except runtime.DeviceError as error:
    print(error.device, error.code, error, sep="|")
"""
TAGS = "blockIdx.x threadIdx.x"

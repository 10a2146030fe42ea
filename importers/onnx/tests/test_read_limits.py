"""Models that would cost much time or memory are refused early."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from dso_packer_onnx.read import read_model, with_shapes
from runtime.error import PackerError

from .small_models import INT64, model, node, unknown, value, weight

BOMBS = """
import sys, time
import onnx, onnx.reference, onnx_ir
from dso_packer_onnx.read import read_model
from runtime.error import PackerError

def field(number, data):
    head, length = bytes([number << 3 | 2]), len(data)
    while length > 127:
        head, length = head + bytes([length & 127 | 128]), length >> 7
    return head + bytes([length]) + data

nested = b""
for _ in range(60):
    nested = field(1, field(5, field(6, nested)))
bombs = {
    "more than 1,000,000 messages": field(7, field(1, b"") * 8_000_000),
    "nested deeper": field(7, nested),
    "store it as raw_data": field(7, field(5, field(7, bytes(100 << 20)))),
}
for words, data in bombs.items():
    started = time.process_time()
    try:
        read_model(data)
    except PackerError as error:
        assert words in str(error), error
    assert time.process_time() - started < 2, words
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
assert int(peak.split()[1]) < 1 << 20  # KiB; ru_maxrss has the peak of the parent process, too
"""


def test_a_small_file_cannot_make_a_large_message() -> None:
    """Protobuf would make 150 bytes of each two; the process stays below 1 GiB."""
    subprocess.run([sys.executable, "-P", "-c", BOMBS], check=True)


def test_an_integer_input_of_many_elements_takes_no_time() -> None:
    """ONNX's propagation of data would make a symbol of each element."""
    nodes = [node("Gather", "x i", "y", "take")]
    proto = model(nodes, [value("x", 1 << 30)], [unknown("y")], [weight("i", np.array([3]))])
    started = time.process_time()
    with_shapes(read_model(proto))
    assert time.process_time() - started < 2
    proto = model(
        [node("Reshape", "x s", "y", "many")],
        [value("x", 2, 3), value("s", 1 << 30, dtype=INT64)],
        [unknown("y")],
    )
    with pytest.raises(PackerError, match=r"node 'many' \(Reshape\): input 1, expected at most 32"):
        with_shapes(read_model(proto))

"""R.memory.view: views of tensors with another shape, data type or offset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runtime

from ...support.vm_assembler import DATA_TYPE, FLOAT32, Code, Program, call, const, packed, reg, ret
from ...support.vm_programs import make

VIEW = "runtime.TVMTensorCreateView"


def viewing(name: str = VIEW) -> Any:
    """``main(x, shape, offset)``: the view of floats, and the same with an offset of 0."""
    code = [
        call(3, 1, reg(0), reg(1), const(0), reg(2)),
        call(4, 2, reg(3)),
        call(3, 3, reg(3), reg(4)),
        ret(3),
    ]
    names = [name, "vm.builtin.ensure_zero_offset", "vm.builtin.make_tuple"]
    functions = [Code("main", ["x", "shape", "offset"], code, 5), *map(packed, names)]
    return make(Program(functions, [(DATA_TYPE, FLOAT32)]))["main"]


@pytest.mark.parametrize("name", [VIEW, "runtime.TVMArrayCreateView"])
@pytest.mark.parametrize("offset", [0, 4, 64, 128])
def test_a_view_of_a_tensor_shares_its_memory(name: str, offset: int) -> None:
    """Without an offset it does if it is still aligned, as in TVM; arrays are copied at the end."""
    array = np.arange(32, dtype="float32")
    tensor = runtime.empty((32,), "float32")
    tensor.copy_from(array)
    first = offset // 4
    for result in viewing(name)(array, (0 if offset == 128 else 4,), offset):
        assert result.numpy().tolist() == array[first : first + 4].tolist()
    view, moved = viewing(name)(tensor, (4 if offset < 128 else 0,), offset)
    tensor.copy_from(array + 1)
    is_aligned = offset % 64 == 0
    assert view.numpy().tolist() == (array + 1)[first : first + 4].tolist()
    assert moved.numpy().tolist() == (array + is_aligned)[first : first + 4].tolist()
    del tensor
    assert view.numpy().tolist() == (array + 1)[first : first + 4].tolist()


def test_a_view_of_read_only_memory_is_read_only() -> None:
    """With an offset, and without."""
    array = np.zeros(32, "uint8")
    array.flags.writeable = False
    for offset in (0, 4):
        for given, expected in ((array, True), (runtime.empty((32,), "uint8"), False)):
            assert [r.readonly for r in viewing()(given, (1,), offset)] == [expected, expected]


@pytest.mark.parametrize(
    ("shape", "offset", "error"),
    [
        ((9,), 0, "a view of 36 bytes at offset 0, expected one within the 32 bytes of the tensor"),
        ((1,), 29, "a view of 4 bytes at offset 29, expected one within the 32 bytes"),
        ((1,), -4, "a view of 4 bytes at offset -4, expected"),
        ((2**62, 4), 0, "the view has a data type of 0 bits, or extents that are negative or too"),
        ((-1,), 0, "the view has a data type of 0 bits, or extents that are negative or too large"),
        (3, 0, "argument 2, expected a shape, found int"),
        ((1,), 0.5, "argument 4, expected int, found float"),
    ],
)
def test_a_view_beyond_its_tensor_is_refused(shape: Any, offset: Any, error: str) -> None:
    """TVM takes a negative offset, and reads before the tensor."""
    with pytest.raises((ValueError, TypeError), match=f"^{VIEW}: {error}"):
        viewing()(np.zeros(8, "float32"), shape, offset)

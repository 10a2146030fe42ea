"""Names of TVM's Python that users type here as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support import needs
from ...support.process import run_python
from ...support.vm_assembler import Code, Program, call, imm, packed, reg, ret


def model(*functions: Code) -> Any:
    """A model of bytecode without imports."""
    return load(Reader(Program(list(functions)).payload()))


def identity() -> Any:
    """``main(x)`` returns x."""
    return model(Code("main", ["x"], [ret(0)], 1))


@pytest.fixture
def register() -> Iterator[Callable[..., Any]]:
    """`register_func`, whose names are removed after the test."""
    from runtime.registry import _functions

    before = dict(_functions)
    yield runtime.register_func
    _functions.clear()
    _functions.update(before)


def test_relax_vm_needs_no_import(tmp_path) -> None:
    """The documented call, as the first use of the package in a process."""
    path = packer.export_library(identity(), tmp_path / "model.so")
    code = """
import sys
import runtime
machine = runtime.relax_vm.VirtualMachine(runtime.load(sys.argv[1]), runtime.cpu())
print([machine["main"](3), runtime.load(sys.argv[1])["main"](x=4)])
"""
    assert run_python(code, str(path)) == [3, 4]


def test_relax_vm_is_a_module() -> None:
    """It is imported as TVM's is, before or after its first use, and is one with `relax.vm`."""
    code = """
import {}
import runtime.relax.vm
from runtime.relax_vm import VirtualMachine
import runtime.relax_vm as again
print(int(VirtualMachine is runtime.relax.vm.VirtualMachine is again.VirtualMachine), end="")
print(int(runtime.relax_vm is runtime.relax.vm))
"""
    for first in ("runtime.relax_vm", "runtime"):
        assert run_python(code.format(first)) == 11


def test_register_func_takes_a_function(register) -> None:
    """Beside the decorator; the function is returned."""

    def double(x: int) -> int:
        return 2 * x

    assert register("test.double", double) is double
    assert runtime.get_global_func("test.double")(4) == 8
    assert register("test.triple")(double) is double
    with pytest.raises(ValueError, match=r"^global function 'test\.double' is already registered"):
        register("test.double", double)
    assert register("test.double", abs, override=True) is abs
    with pytest.raises(TypeError, match=r"expected a callable, found 3$"):
        register("test.three", 3)


def test_a_registered_function_precedes_one_that_every_program_has(register) -> None:
    """The core has sort; a program may have a faster one."""
    name = "tvm.contrib.sort.sort"
    assert name in runtime.list_global_func_names()
    own = runtime.get_global_func(name)
    assert register(name, print) is print
    assert runtime.get_global_func(name) is print is not own


def calls_add(register: Callable[..., Any]) -> Any:
    """``main(n)`` calls ``helper(n)``, which adds 1, and doubles its result."""
    register("test.add", lambda a, b: a + b)
    helper = Code("helper", ["n"], [call(1, 2, reg(0), imm(1)), ret(1)], 2)
    main = Code("main", ["n"], [call(1, 1, reg(0)), call(2, 2, reg(1), reg(1)), ret(2)], 3)
    return model(main, helper, packed("test.add"))


def test_an_instrument_sees_each_call(register) -> None:
    """Name, whether it is before the call, result and arguments, in TVM's order."""
    machine = runtime.relax_vm.VirtualMachine(calls_add(register))
    seen: list[tuple[Any, ...]] = []
    machine.set_instrument(lambda function, *rest: seen.append((callable(function), *rest)))
    assert machine["main"](4) == 10
    assert seen == [
        (False, "helper", True, None, 4),
        (True, "test.add", True, None, 4, 1),
        (True, "test.add", False, 5, 4, 1),
        (False, "helper", False, 5, 4),
        (True, "test.add", True, None, 5, 5),
        (True, "test.add", False, 10, 5, 5),
    ]
    machine.set_instrument(None)
    assert machine["main"](4) == 10
    assert len(seen) == 6


def test_an_instrument_skips_and_ends_calls(register) -> None:
    """1 skips a call; an exception ends the run; a global function is found by its name."""
    machine = runtime.relax_vm.VirtualMachine(calls_add(register))
    register("test.skip", lambda function, name, before, *rest: int(name == "helper"))
    machine.set_instrument("test.skip")
    with pytest.raises(TypeError, match="NoneType"):
        machine["main"](4)
    machine.set_instrument(lambda *values: 1)
    assert machine["main"](4) is None

    def fail(*values: Any) -> None:
        raise KeyError(values[1])

    machine.set_instrument(fail)
    with pytest.raises(KeyError, match="helper"):
        machine["main"](4)
    with pytest.raises(runtime.FunctionNotFoundError, match=r"'test\.none'"):
        machine.set_instrument("test.none")


def test_arrays_without_a_device_go_to_the_models(opencl_device) -> None:
    """NumPy's arrays are copied to the first device, in tuples too; tensors stay where they are."""
    machine = runtime.relax_vm.VirtualMachine(identity(), runtime.Device("opencl"))
    x = np.arange(4, dtype="float32")
    for y in (machine["main"](x), machine["main"](x=x), machine["main"]((x, 3))[0]):
        assert y.device == runtime.Device("opencl")
        np.testing.assert_array_equal(y.numpy(), x)
    here = runtime.tensor(x)
    assert machine["main"](here).device == runtime.cpu()
    assert repr(machine["main"]) == "<Function main: main(x)>"


def test_a_tensor_is_copied_to_a_tensor_or_a_device() -> None:
    """`copyto` copies always; `to` only to another device."""
    x = runtime.tensor(np.arange(3.0))
    y = runtime.empty((3,), "float64")
    assert x.copyto(y) is y
    np.testing.assert_array_equal(y.numpy(), x.numpy())
    z = x.copyto(runtime.cpu())
    assert z.device == runtime.cpu()
    assert not np.shares_memory(z.numpy(), x.numpy())
    with pytest.raises(ValueError, match="expected shape"):
        x.copyto(runtime.empty((4,), "float64"))


def test_a_returned_tensor_shares_its_memory() -> None:
    """As in TVM, in a tuple too; an array of another package is copied."""
    pair = Code("pair", ["x"], [call(1, 2, reg(0), imm(3)), ret(1)], 2)
    both = model(Code("main", ["x"], [ret(0)], 1), pair, packed("vm.builtin.make_tuple"))
    x = runtime.empty((4,)).copy_from(np.ones(4, "float32"))
    for y in (both["main"](x), both["pair"](x)[0]):
        assert np.shares_memory(y.numpy(), x.numpy())
    array = np.ones(4, "float32")
    assert not np.shares_memory(both["main"](array).numpy(), array)


def test_a_missing_callee_names_no_function_of_the_machine() -> None:
    """Only a similar name is a hint."""
    text = r"runtime.register_func or dso_register_function can provide it"
    with pytest.raises(runtime.FunctionNotFoundError, match=text) as raised:
        model(Code("main", [], [call(0, 1), ret(0)], 1), packed("zz"))["main"]
    assert "__tvm" not in str(raised.value)
    assert "tvm.contrib" not in str(raised.value)
    with pytest.raises(runtime.FunctionNotFoundError, match=r"near names: 'tvm\.contrib\.sort\.to"):
        model(Code("main", [], [call(0, 1), ret(0)], 1), packed("tvm.contrib.sort.topp"))["main"]


def test_a_tensor_with_a_gradient_names_the_way_out() -> None:
    """PyTorch does not share it."""
    torch = needs.module("torch", "torch")
    with pytest.raises(ValueError, match=r"with requires_grad; pass its \.detach\(\)"):
        identity()["main"](torch.ones(3, requires_grad=True))


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_an_int_beyond_int64_is_called_so(number) -> None:
    """With the number."""
    with pytest.raises(OverflowError, match=f"expected an int64, found {number}"):
        identity()["main"](number)

"""The machine of an executable, and the module with the functions of TVM's protocol."""

from __future__ import annotations

from .._core import Device, VirtualMachine, vm_builtin_names
from ..abi import RUNNABLE
from ..error import FunctionNotFoundError, WeightNotFoundError, listed, near_names
from ..module import Module, preorder
from ..registry import find_global_func, get_global_func, near_functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .._core import Function
    from ..graph.profile import Profile
    from ..modules.vm import VMExecutable
    from ..tensors.tensor import Tensor

# TVM FFI's type index of a str constant, and the built-in function that no import can replace.
STR = 65
WEIGHT = "dso.weight"


def make_machine(executable: VMExecutable, devices: Iterable[Any] = ()) -> VirtualMachine:
    """Bind an executable to the functions of its imports, global functions and built-in ones.

    `devices` are the code's devices, by index: the CPU by default, and always the last. Raises
    FunctionNotFoundError, which lists functions that the code calls and that do not exist, and
    WeightNotFoundError for a weight that no import has.
    """
    imports = list(preorder(executable))[1:]
    callees = _find_callees(executable, imports)
    weights = _find_weights(executable, imports)
    constants = executable.values
    return VirtualMachine(executable.bytecode, constants, weights, callees, list(devices))


def function_of(machine: VirtualMachine, executable: VMExecutable, name: str) -> Function | None:
    """Return a function of the machine of an executable, which it keeps alive."""
    row = executable.table_row(name)
    names = row.param_names if row is not None else ()
    return machine.function(name, tuple(names), executable)


def _find_weights(executable: VMExecutable, imports: list[Module]) -> list[Tensor | None]:
    """Find for each constant the weight that it names, or None."""
    weights: list[Tensor | None] = [None] * len(executable.bytecode_constants)
    used = executable.bytecode.weight_constants()
    parts = [own for module in imports if (own := module.own_weights)] if used else []
    for index in used:
        type_index, name = executable.bytecode_constants[index]
        if type_index == STR:
            weights[index] = _find_weight(executable, name, parts)
    return weights


def _find_weight(executable: VMExecutable, name: str, parts: list[Mapping[str, Tensor]]) -> Tensor:
    for part in parts:
        if name in part:
            return part[name]
    known = [name for part in parts for name in part]
    text = f"{executable!r}: its code uses the weight {name!r}, which no import has"
    raise WeightNotFoundError(text + near_names(name, known), name=name)


def _find_callees(
    executable: VMExecutable, imports: list[Module]
) -> list[Callable[..., Any] | None]:
    own = set(vm_builtin_names())
    callees: list[Callable[..., Any] | None] = []
    missing = []
    for function in executable.functions:
        is_called = function.kind == 0 and function.name != WEIGHT
        found = _find(function.name, imports) if is_called else None
        if found is None and function.kind == 0 and function.name not in own:
            missing.append(function.name)
        callees.append(found)
    if missing:
        raise _not_found(executable, missing, imports)
    return callees


def _find(name: str, imports: list[Module]) -> Callable[..., Any] | None:
    found = (module.find_function(name) for module in imports)
    function = next((function for function in found if function is not None), None)
    return function if function is not None else find_global_func(name)


def _not_found(
    executable: VMExecutable, missing: list[str], imports: list[Module]
) -> FunctionNotFoundError:
    known = [name for module in imports for name in module.function_names()]
    text = (
        f"{executable!r}: its code calls {listed(missing)}, which no import has, and which is "
        f"neither a global function nor built in; runtime.register_func or "
        f"dso_register_function can provide it"
    ) + near_functions(missing[0], known)
    return FunctionNotFoundError(text, name=missing[0], module=executable.type_key)


class VirtualMachineModule(Module):
    """A virtual machine with the functions of TVM's protocol; ``vm_load_executable()`` makes it.

    ``vm_initialization(device_type, index, allocator, ...)`` binds it; the allocator's number is
    ignored, since there is one kind. Functions of the model are functions of the module.
    `relax_vm.VirtualMachine` documents the errors of the methods.
    """

    type_key = "relax.VirtualMachine"
    property_mask = RUNNABLE

    _FUNCTIONS = (
        *("vm_initialization", "invoke_closure", "save_function", "set_input", "invoke_stateful"),
        *("get_output", "get_output_arity", "get_function_arity", "get_function_param_name"),
        "set_instrument",
    )

    def __init__(self, executable: VMExecutable) -> None:
        self._executable = executable
        self._machine: VirtualMachine | None = None
        self._device = Device("cpu")
        self._devices: list[Device] = []
        self._saved: dict[str, Callable[..., Any]] = {}
        self._inputs: dict[str, tuple[Any, ...]] = {}
        self._outputs: dict[str, Any] = {}

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find a function of the protocol, a saved one, or one of the model."""
        if name in self._FUNCTIONS:
            function: Callable[..., Any] = getattr(self, name)
            return function
        if name in self._saved:
            return self._saved[name]
        if self._executable.table_row(name) is None:
            return None
        found = function_of(self._bound(), self._executable, name)
        if found is None or self._device.kind == "cpu":
            return found
        from .placing import PlacedFunction

        return PlacedFunction(found, self._device)

    def _bound(self) -> VirtualMachine:
        if self._machine is None:
            self._machine = make_machine(self._executable)
        return self._machine

    def function_names(self) -> list[str]:
        """The names of the model's functions and of saved functions."""
        return [*self._executable.function_names(), *self._saved]

    def vm_initialization(self, *numbers: int) -> None:
        """Bind the machine: device type, index and allocator, for each device."""
        if not numbers or len(numbers) % 3:
            raise ValueError(f"vm_initialization: {len(numbers)} numbers, expected 3 per device")
        triples = zip(numbers[::3], numbers[1::3], strict=False)
        devices = [Device(device_type, index) for device_type, index in triples]
        self._machine = make_machine(self._executable, devices)
        self._device, self._devices = devices[0], devices

    def set_instrument(self, instrument: Callable[..., Any] | str | None) -> None:
        """Run a function, or a global one by name, around each call of the code; None ends it."""
        function = get_global_func(instrument) if isinstance(instrument, str) else instrument
        self._bound().set_instrument(function)

    def profile(self, name: str, args: Sequence[Any], number: int) -> Profile:
        """Measure the functions that a function of the model calls, with another machine."""
        from .profile import profile_function

        return profile_function(self._executable, self._devices, name, args, number)

    def invoke_closure(self, closure: Callable[..., Any], *args: Any) -> Any:
        """Call a function that the machine made."""
        return closure(*args)

    def save_function(self, name: str, saved_name: str, include_return: bool, *args: Any) -> None:
        """Save a call of a function with its arguments under a name."""
        if self._executable.table_row(saved_name) is not None:
            raise ValueError(f"save_function: {saved_name!r} is a function of the model")
        function = self.get_function(name)

        def call() -> Any:
            result = function(*args)
            return result if include_return else None

        self._saved[saved_name] = call

    def set_input(self, name: str, *args: Any) -> None:
        """Set the arguments of a function; arrays move to the first device."""
        arity = self.get_function_arity(name)
        if len(args) != arity:
            raise TypeError(f"set_input: {name!r} takes {arity} arguments, found {len(args)}")
        from .placing import placed

        self._inputs[name] = tuple(placed(value, self._device) for value in args)

    def invoke_stateful(self, name: str) -> None:
        """Call a function with the arguments that were set."""
        if name not in self._inputs:
            raise ValueError(f"invoke_stateful: no input of {name!r} was set; use set_input")
        self._outputs[name] = self.get_function(name)(*self._inputs[name])

    def get_output(self, name: str, *indices: int) -> Any:
        """Return the result of `invoke_stateful`, or an item if it is a tuple."""
        if name not in self._outputs:
            raise ValueError(f"get_output: {name!r} was not invoked; use invoke_stateful")
        output = self._outputs[name]
        for index in indices:
            output = output[index]
        return output

    def get_output_arity(self, name: str, *indices: int) -> int:
        """Return the number of items of an output; -1 if it is not a tuple."""
        output = self.get_output(name, *indices)
        return len(output) if isinstance(output, tuple) else -1

    def get_function_arity(self, name: str) -> int:
        """Return the number of arguments of a function of the model."""
        return len(self._param_names(name))

    def get_function_param_name(self, name: str, index: int) -> str:
        """Return the name of an argument."""
        return self._param_names(name)[index]

    def _param_names(self, name: str) -> Sequence[str]:
        row = self._executable.table_row(name)
        if row is None:
            raise self._not_found(name, query_imports=False)
        return row.param_names

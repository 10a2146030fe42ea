"""relax's virtual machine: runs models that TVM compiled.

A model is called like any module, or through TVM's class:

    model = runtime.load("model.so")
    y = model["main"](x)                                  # on the CPU

    machine = VirtualMachine(model, runtime.Device("opencl"))      # as with TVM
    y = machine["main"](x)
    machine.set_input("main", x)
    machine.invoke_stateful("main")
    y = machine.get_outputs("main")
"""

from __future__ import annotations

from .._core import Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..graph.profile import Profile
    from ..graph.timing import BenchmarkResult
    from ..module import Module
    from .machine import VirtualMachineModule


class VirtualMachine:
    """A model on given devices, with the methods of TVM's class.

    Parameters
    ----------
    module : Module
        A model: it has a function ``vm_load_executable``.
    device : Device, or a list of them
        As ``"cpu"`` or ``runtime.Device("opencl", 0)``; the CPU is added if it is not the last.
        Arguments that are not a `Tensor`, such as NumPy arrays, are copied to the first one.
    memory_cfg : object
        Ignored, and accepted for compatibility: memory is pooled per machine.

    Raises
    ------
    FunctionNotFoundError
        The module is not a model, or calls a function that does not exist.
    DeviceError
        A device is not available.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(self, module: Module, device: Any = "cpu", memory_cfg: Any = None) -> None:
        self.module: VirtualMachineModule = module["vm_load_executable"]()
        devices = device if isinstance(device, (list, tuple)) else [device]
        numbers = []
        for one in map(Device, devices):
            numbers += [one.device_type, one.index, self.POOLED_ALLOCATOR]
        self.module.vm_initialization(*numbers)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self.module[name]

    def invoke_closure(self, closure: Callable[..., Any], *args: Any) -> Any:
        """Call a function that the machine made."""
        return closure(*args)

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set the arguments of a function, by position or name, for `invoke_stateful`.

        Raises
        ------
        FunctionNotFoundError
            The model has no such function.
        TypeError
            Arguments are missing, too many, or of other names.
        """
        self.module.set_input(func_name, *self._positional(func_name, args, kwargs))

    def _positional(
        self, func_name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        if not kwargs:
            return args
        names = self.module._param_names(func_name)
        if unknown := [name for name in kwargs if name not in names]:
            raise TypeError(f"{func_name}: no parameter {unknown[0]!r}, expected of {list(names)}")
        left = list(args)
        values = [kwargs[n] if n in kwargs else left.pop(0) for n in names if n in kwargs or left]
        return (*values, *left)

    def invoke_stateful(self, func_name: str) -> None:
        """Call a function with the arguments that were set; ValueError if none were."""
        self.module.invoke_stateful(func_name)

    def get_outputs(self, func_name: str) -> Any:
        """Return the result of `invoke_stateful`: a Tensor or a tuple; ValueError before it."""
        return self.module.get_output(func_name)

    def save_function(
        self,
        func_name: str,
        saved_name: str,
        *args: Any,
        include_return: bool = True,
        **kwargs: Any,
    ) -> None:
        """Save a call of a function with its arguments, to be looked up as `saved_name`.

        Raises
        ------
        FunctionNotFoundError
            The model has no such function.
        ValueError
            The model has a function `saved_name`.
        """
        values = self._positional(func_name, args, kwargs)
        self.module.save_function(func_name, saved_name, include_return, *values)

    def set_instrument(self, instrument: Callable[..., Any] | str | None) -> None:
        """Run a function before and after each call of the code, for debugging.

        Parameters
        ----------
        instrument : callable, str, or None
            A function, the name of a global one, or None to end it. As in TVM, it gets the called
            function (None for functions of the machine), its name, whether this is before the
            call, the result (None before it), and the arguments. Tensors are not copied, and
            valid until the instrument returns. If it returns 1 before a call, the call is skipped
            and returns None.

        Raises
        ------
        FunctionNotFoundError
            No global function has this name.

        Notes
        -----
        Calls that already run are not affected. An exception of the instrument ends the call.
        """
        self.module.set_instrument(instrument)

    def profile(self, func_name: str, *args: Any, number: int = 10) -> Profile:
        """Call a function several times, and measure each operator.

        Parameters
        ----------
        func_name : str
            The function.
        *args
            Its arguments.
        number : int
            The number of calls, after one that is not measured.

        Returns
        -------
        Profile
            A row for each operator, in the order of the code: name and kind of its node, if the
            library has the record of a model, function, mean seconds, calls and flops. Then a row
            for each built-in function of the machine. Its text is a table. On a device the times
            are those to start an operator.

        Raises
        ------
        FunctionNotFoundError
            The model has no such function.
        ValueError
            `number` is less than 1.

        Notes
        -----
        Another machine with the same weights measures; calls of this one are not slowed down.
        """
        return self.module.profile(func_name, args, number)

    def time_evaluator(
        self,
        func_name: str,
        dev: Any = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0.0,
    ) -> Callable[..., BenchmarkResult]:
        """Make a function that measures calls of another; `dev` is ignored, and accepted as by TVM.

        Raises
        ------
        FunctionNotFoundError
            There is no such function.
        """
        return self.module.time_evaluator(
            func_name, number=number, repeat=repeat, min_repeat_ms=min_repeat_ms
        )

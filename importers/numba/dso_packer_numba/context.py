"""Numba's compiler, set up to make relocatable objects for any processor of this machine's kind.

Inside `compiling_for`, every function that Numba compiles is compiled anew, with `Context` and
`Codegen`. The functions that the process had compiled before are set aside, and restored at the
end, so that a user's process goes on as before.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, codegen, pythonapi, types
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher, _DispatcherBase
from numba.core.registry import cpu_target
from numba.core.typing.templates import _IntrinsicTemplate

from .callables import FunctionValues, calling_by_address
from .constructs import marking_constructs
from .deferred import signatures_of
from .exceptions import CallConv, constant_of, name_of, record_of
from .threads import threads_of_the_loader

NATIVE = "native"
# A symbol that nothing defines: code that still needs it cannot be exported.
OBJECT = "numba.object"
_TARGET = "_toplevel_target_context"


class _Library(codegen.AOTCodeLibrary):
    """The LLVM module of one function and its callees."""


class Codegen(codegen.AOTCPUCodegen):
    """Position-independent code for one processor."""

    _library_class = _Library

    def __init__(self, name: str, processor: str, features: str) -> None:
        self._features = features
        super().__init__(name, processor)

    def _customize_tm_options(self, options: dict[str, Any]) -> None:
        super()._customize_tm_options(options)
        options["cpu"] = self._cpu_name
        options["features"] = self._features

    def set_env(self, name: str, env: Any) -> None:
        """Ignore Python constants: code that reads them is refused."""

    def emit(self, module: Any) -> bytes:
        """Return the object of an LLVM module."""
        return bytes(self._tm.emit_object(module))

    def remove_unused(self, module: Any) -> None:
        """Remove the functions and data of a module that nothing uses."""
        passes = binding.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        tuning = binding.create_pipeline_tuning_options(0)
        passes.run(module, binding.create_pass_builder(self._tm, tuning))

    def empty_module(self, name: str) -> Any:
        """Return an LLVM module without contents."""
        return binding.parse_assembly(str(self._create_empty_module(name)))


class _PythonAPI(pythonapi.PythonAPI):
    """Stores exceptions as records, in place of pickled objects; there is no interpreter's lock."""

    def serialize_object(self, obj: Any) -> Any:
        if not (isinstance(obj, tuple) and len(obj) == 3):
            return super().serialize_object(obj)
        kind, arguments, place = obj
        record = record_of(kind, arguments or (), place)
        data = constant_of(self.context, self.module, record)
        null, none = cgutils.get_null_value(self.voidptr), ir.Constant(ir.IntType(32), 0)
        struct = ir.Constant.literal_struct([data, none, null, null, none])
        return self.context.insert_unique_const(self.module, f"{name_of(record)}.error", struct)

    def gil_ensure(self) -> Any:
        return cgutils.get_null_value(self.voidptr)

    def gil_release(self, gil: Any) -> None:
        """Do nothing."""


class Context(FunctionValues):
    """Lowers Numba's IR for a library: no addresses of this process, no Python objects."""

    allow_dynamic_globals = False
    aot_mode = True
    frozen: list[str]
    is_of_numba = False  # the function that is lowered
    libraries: dict[str, Any]

    @classmethod
    def of(cls, other: Any, made: Codegen) -> Context:
        """Return a context with the registries of another one."""
        context = cls.__new__(cls)
        context.__dict__.update(other.__dict__)
        context._internal_codegen = made
        context.cached_internal_func = {}
        context.callbacks = {}
        context.frozen = []
        context.libraries = {}
        return context

    def create_cpython_wrapper(self, *_: Any, **__: Any) -> None:
        """Make no wrapper for Python."""

    def create_cfunc_wrapper(self, *_: Any, **__: Any) -> None:
        """Make no wrapper for C."""

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> object:
        """Finish the code; return a key for it."""
        del env
        library._ensure_finalized()
        self.libraries[fndesc.llvm_func_name] = library
        return object()

    @property
    def call_conv(self) -> CallConv:
        return CallConv(self)

    def get_python_api(self, builder: Any) -> _PythonAPI:
        return _PythonAPI(self, builder)

    def add_dynamic_addr(self, builder: Any, intaddr: int, info: str) -> Any:
        """Return the address of an object, which most code does not read."""
        del intaddr, info
        module = builder.module
        found = module.globals.get(OBJECT)
        if found is None:
            kind = self.get_value_type(types.voidptr)
            found = cgutils.add_global_variable(module, kind, OBJECT)
        return builder.load(found)

    def make_constant_array(self, builder: Any, typ: Any, ary: Any) -> Any:
        """Store a global array in the code, as it is now; Numba's own tables never change."""
        if not self.is_of_numba:
            self.frozen.append(str(typ))
        if not (ary.flags.c_contiguous or ary.flags.f_contiguous):
            ary = np.ascontiguousarray(ary)
        return super().make_constant_array(builder, typ, ary)


def processor_of(cpu_name: str, features: str) -> tuple[str, str]:
    """Return the processor and its features; `NATIVE` is the processor of this machine."""
    if cpu_name != NATIVE:
        return cpu_name, features
    return binding.get_host_cpu_name(), codegen.get_host_cpu_features()


@contextmanager
def compiling_for(cpu_name: str, features: str, name: str) -> Iterator[Context]:
    """Let Numba compile for a processor, into libraries that `Codegen` can emit."""
    with global_compiler_lock, threads_of_the_loader(), calling_by_address(), marking_constructs():
        base = cpu_target.target_context
        base.refresh()
        context = Context.of(base, Codegen(name, *processor_of(cpu_name, features)))
        restore = _set_aside()
        _DispatcherBase.add_overload, original = _add_overload, _DispatcherBase.add_overload
        cpu_target.__dict__[_TARGET] = context
        try:
            yield context
        finally:
            cpu_target.__dict__[_TARGET] = base
            _DispatcherBase.add_overload = original
            for step in restore:
                step()


def _add_overload(self: Any, cres: Any) -> None:
    """Keep compiled code where calls of Numba find it, but not calls of Python."""
    self.overloads[tuple(cres.signature.args)] = cres


def _set_aside() -> list[Callable[[], None]]:
    """Set aside what dispatchers have compiled; return the functions that restore it."""
    # Not isinstance: a weak proxy of a dead object raises.
    dispatchers = [found for found in gc.get_objects() if issubclass(type(found), Dispatcher)]
    steps = [_set_aside_one(found) for found in dispatchers]
    return [*steps, *map(_set_aside_intrinsic, _IntrinsicTemplate.__subclasses__())]


def _set_aside_intrinsic(template: Any) -> Callable[[], None]:
    """Let an intrinsic be typed anew: its types may refer to code of this process."""
    saved = template._impl_cache, template._overload_cache
    template._impl_cache, template._overload_cache = {}, {}

    def restore() -> None:
        template._impl_cache, template._overload_cache = saved

    return restore


def _set_aside_one(dispatcher: Any) -> Callable[[], None]:
    saved = {key: dispatcher.__dict__[key] for key in ("overloads", "_cache", "targetctx")}
    known = signatures_of(dispatcher)
    is_closed = not dispatcher._can_compile
    dispatcher.overloads, dispatcher._cache = OrderedDict(), NullCache()
    dispatcher.targetctx = cpu_target.target_context
    dispatcher._can_compile = True
    if is_closed and known:
        dispatcher.get_call_template = _closed(dispatcher, known, "get_call_template")
        dispatcher.get_function_type = _closed(dispatcher, known, "get_function_type")

    def restore() -> None:
        dispatcher.__dict__.update(saved)
        dispatcher.__dict__.pop("get_call_template", None)
        dispatcher.__dict__.pop("get_function_type", None)
        dispatcher._can_compile = not is_closed

    return restore


def _closed(dispatcher: Any, known: list[Any], name: str) -> Callable[..., Any]:
    """Let a method find only the signatures that were compiled before, as without us.

    While the decorator compiles them, a recursive call may compile others.
    """

    def method(*args: Any) -> Any:
        if not dispatcher.is_compiling:
            for signature in known:
                dispatcher.compile(signature)
            dispatcher._can_compile = False
        try:
            return getattr(type(dispatcher), name)(dispatcher, *args)
        finally:
            dispatcher._can_compile = True

    return method

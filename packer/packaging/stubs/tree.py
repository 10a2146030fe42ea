"""The functions and weights that a tree offers, read from a library that is not loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import runtime
from runtime.abi import FACT_PREFIX, STRUCTS
from runtime.error import LibraryLoadError
from runtime.module import preorder
from runtime.modules.device import LAUNCHED, DeviceModule, metadata_of
from runtime.modules.encrypted import EncryptedModule
from runtime.modules.graph_executor import AotExecutorFactory
from runtime.modules.opaque import OpaqueModule
from runtime.modules.shared_library import CarriedSharedLibraryModule
from runtime.modules.vm import VMExecutable
from runtime.structs.record import members_of
from runtime.tensors.weights import described_weights

from ...declare.facts import Facts, parse_facts
from ...elf.image import Image
from ...inspect import OpenedLibrary
from ...inspect.constants import read_constants

if TYPE_CHECKING:
    from runtime.constants import ConstantsRecord

WeightType = tuple[str, tuple[int, ...]]

_VECTOR = re.compile(r"[a-z]+\d+x\d+")  # an array of the lanes
_NOT_TVM = ("TVMFFIErrorSetRaisedFromCStr", "TVMFFIEnvGetStream", "TVMFFIEnvSetStream")


class Found(NamedTuple):
    """A function of the tree."""

    name: str
    facts: Facts | None = None  # None if its parameters are unknown
    makes_executor: bool = False  # True if it returns a GraphExecutor
    is_positional: bool = False  # True if calls cannot name its parameters


class Tree(NamedTuple):
    """The contents of a library for a stub."""

    functions: dict[str, Found]  # what ``module[name]`` finds, by name
    is_complete: bool  # False if it may find more, whose names the library does not list
    entry: str  # the name of the function that a call of the tree calls
    constants: ConstantsRecord  # of the host code
    weights: dict[str, WeightType]  # of what ``module.weights[name]`` finds, by name
    members: dict[str, list[tuple[str, str]]]  # of each struct: its members and their codes


def read_tree(opened: OpenedLibrary) -> Tree:
    """Read the functions and weights of a library.

    Raises LibraryLoadError if a load would refuse the library, or its tree cannot be read.
    """
    report, root = opened.report, opened.root
    if report.problems or root is None:
        text = report.problems[0] if report.problems else "its tree cannot be read"
        text = f"{report.path}: expected a library without problems, found: {text}"
        raise LibraryLoadError(f"{text}; see packer inspect", path=report.path, reason="format")
    nodes = list(preorder(root))
    functions: dict[str, Found] = {}
    weights: dict[str, WeightType] = {}
    is_complete = not _is_from_tvm(opened)
    for node in nodes:
        found, lists_all = _functions(node, opened)
        is_complete = is_complete and lists_all
        for function in found:
            functions.setdefault(function.name, function)
        for name, type_ in described_weights(node.own_weights, node.own_record):
            weights.setdefault(name, type_)
    names = (report.entry if _is_host_code(n) else n.own_entry_name for n in nodes)
    entry = next((name for name in names if name is not None), "main")
    constants = read_constants(Image(opened.data, report.path, []), report.symbols.dynamic)
    return Tree(functions, is_complete, entry, constants, weights, _members(opened))


def _is_host_code(node: runtime.Module) -> bool:
    return node.type_key == "library"


def _functions(node: runtime.Module, opened: OpenedLibrary) -> tuple[list[Found], bool]:
    """Return the functions that a node offers, and whether these are all."""
    names = node.function_names()
    if _is_host_code(node):
        return [Found(name, facts) for name, facts in _facts(opened)], True
    if isinstance(node, DeviceModule):
        if node.type_key not in LAUNCHED:  # carried only: a look-up finds none of its kernels
            return [], True
        return [Found(name, _kernel_facts(node, name)) for name in names], True
    if isinstance(node, AotExecutorFactory):
        return [Found(n, makes_executor=n == node.module_name) for n in names], True
    if isinstance(node, VMExecutable):
        found = [Found(name, _bytecode_facts(node, name)) for name in names]
        return [*found, Found("vm_load_executable")], True
    if type(node).find_function is runtime.Module.find_function:
        hides = OpaqueModule | CarriedSharedLibraryModule | EncryptedModule
        return [], not isinstance(node, hides)
    lists_all = type(node).function_names is not runtime.Module.function_names
    return [Found(name) for name in names], lists_all


def _bytecode_facts(module: VMExecutable, name: str) -> Facts:
    """Return the facts of a function in bytecode, which accepts values of any type.

    The function of a model with a record takes and returns tensors; their types are its doc.
    """
    row = module.table_row(name)
    count, names = (row.num_args, row.param_names) if row else (0, ())
    names = names if len(names) == count else tuple(f"arg{i}" for i in range(count))
    record = module.model_record
    ends = record.ends_of(name) if record is not None else None
    if ends is not None and len(ends[0]) == count:
        inputs, outputs = ends
        doc = f"{', '.join(map(str, inputs))} -> {', '.join(map(str, outputs))}"
        params = tuple((n, "tensor") for n in names)
        out = tuple((info.name, "tensor") for info in outputs)
        return Facts("safe_call", "release", "", params, "void", doc, out)
    return Facts("safe_call", "release", "", tuple((n, "any") for n in names), "any", "")


def _facts(opened: OpenedLibrary) -> Iterator[tuple[str, Facts | None]]:
    """The functions of the host code, with their facts."""
    dynamic = opened.report.symbols.dynamic
    image = Image(opened.data, opened.report.path, [])
    for function in opened.report.functions:
        symbol = dynamic.find(FACT_PREFIX + function.name)
        yield function.name, None if symbol is None else parse_facts(image.data_of(symbol))


def _members(opened: OpenedLibrary) -> dict[str, list[tuple[str, str]]]:
    """Return the members of the structs of the host code."""
    symbol = opened.report.symbols.dynamic.find(STRUCTS)
    if symbol is None:
        return {}
    return members_of(bytes(Image(opened.data, opened.report.path, []).data_of(symbol)))


def _kernel_facts(module: DeviceModule, name: str) -> Facts | None:
    """Return the facts of a kernel, as the runtime makes them."""
    try:
        facts = parse_facts(metadata_of(module.functions[name]).encode() + b"\0")
    except ValueError:  # a name that the runtime refuses too
        return None
    params = ((name, "tensor" if _VECTOR.fullmatch(code) else code) for name, code in facts.params)
    return facts._replace(params=tuple(params))


def _is_from_tvm(opened: OpenedLibrary) -> bool:
    """Return True if every function of the file is a packed one (docs/format.md, "Symbols")."""
    symbols = opened.report.symbols.dynamic
    if next(symbols.beginning_with("__packer_"), None) is not None:
        return False
    names = (symbol.name for symbol in symbols)
    marks = (n for n in names if n.startswith(("__tvm_", "__TVM", "TVM")))
    return any(name.removeprefix("__") not in _NOT_TVM for name in marks)

"""``packer load``: load a library, print its tree, call a function."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from runtime.error import BlobFormatError, PackerError
from runtime.module import preorder

from ..files.text import shown_path
from .parser import CommandParser
from .terminal import write

if TYPE_CHECKING:
    from runtime.graph.profile import Profile
    from runtime.module import Module

_DESCRIPTION = """\
Load a library and print its tree of modules. If a function is given, call it and print the result.

Loading runs the constructors of the library: load only libraries that you trust. `packer inspect`
lists the constructors without running them.

With --profile the function is called several times, and the time of each operator is printed: its
node in the model, its function, calls, median microseconds, share, GFLOP/s and GB/s; then how fast
this machine reads memory."""

_EPILOG = """\
arguments of the function:
  42  -1  0x2a       int                      1.5  1e-3  inf  nan   float
  true  false        bool                     none                  None
  text  '"42"'       str; always if quoted    @x.npy        the array in a file

The function gets a copy of each array, which is printed after the call.

examples:
  packer load model.so
  packer load model.so add 40 2
  packer load --quiet model.so add 40 2
  packer load model.so scale @x.npy 3 0.5
  packer load -- -strange.so add 40 2
  packer load --key acme.aes model.so      # of packer export --encrypt-key
  packer load --profile model.so main @x.npy"""

# A tree may be a chain of any length; the indent of its lines is bounded.
_MAX_INDENT = 30
_MAX_NAMES = 12
_PROFILED_SECONDS = 0.5
_READ_NBYTES = 256 << 20  # more than caches have
_FEW_FLOPS = 8  # for each byte: with fewer, memory is the limit
_WORDS = {"true": True, "false": False, "none": None}


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer load``."""
    parser = CommandParser(
        "packer load",
        usage="packer load [OPTION ...] LIBRARY [FUNCTION [ARGUMENT ...]]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the result")
    profile = "print the time of each operator that a function of a model calls"
    parser.add_argument("--profile", action="store_true", help=profile)
    key = "the key of encrypted modules: a file, env:NAME, or the PKCS #11 URI of a key"
    parser.add_argument("--key", metavar="KEY", help=key)
    parser.add_argument("library", metavar="LIBRARY", help="the library")
    # All that follows belongs to the function: -1 is a number, not an option.
    call = "the function to call, and its arguments"
    parser.add_argument("call", metavar="FUNCTION", nargs=argparse.REMAINDER, help=call)
    arguments = parser.parse_args(argv)
    if arguments.profile and not arguments.call:
        parser.error("--profile needs a function; a model's is main")
    if arguments.call and arguments.call[0].startswith("-"):
        parser.error(f"options go before LIBRARY: {arguments.call[0]}")
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Load, print, call."""
    with signals_end_process():
        _run(arguments)


@contextlib.contextmanager
def signals_end_process() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP end the process at once, unless they are ignored.

    A handler of Python's would run only after the code of the library returns.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = {n: handler for n in numbers if callable(handler := signal.getsignal(n))}
    try:
        for number in handlers:
            signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _run(arguments: argparse.Namespace) -> None:
    import runtime

    module = runtime.load(arguments.library, key=arguments.key)
    if not arguments.quiet:
        write(shown_path(arguments.library))
        for line in model_lines(module):
            write(f"  {line}")
        for line in tree_lines(module):
            write(f"  {line}")
    if arguments.call:
        name, *texts = arguments.call
        if texts[:1] == ["--"]:
            del texts[0]
        if arguments.profile:
            _profile(module[name], name, texts)
        else:
            _call(module[name], name, texts, quiet=arguments.quiet)


def model_lines(root: Module) -> Iterator[str]:
    """Return the signatures of a model and the size of its graph; nothing of other trees."""
    try:
        record = root.model_record
    except BlobFormatError as error:
        yield f"note: the graph cannot be read: {error.message}"
        return
    if record is not None:
        from ..model_text import signatures_text, work_text

        main, *others = signatures_text(record)
        yield main
        yield from (f"  also {text}" for text in others[:_MAX_NAMES])
        if len(others) > _MAX_NAMES:
            yield f"  also {len(others) - _MAX_NAMES} more sets of shapes"
        yield f"graph: {work_text(record)}"
        if record.states:
            yield f"state: {len(record.states)}, as {record.states[0].input!r}; a session keeps it"


def tree_lines(root: Module) -> Iterator[str]:
    """Draw a tree: one line for each module, indented below its importer, imports in order.

    The functions that a model calls, its operators, are counted.
    """
    operators = frozenset().union(*(module.own_callees for module in preorder(root)))
    seen: set[int] = set()
    pending = [(root, 0)]
    while pending:
        module, depth = pending.pop()
        indent = "  " * min(depth, _MAX_INDENT)
        if id(module) in seen:
            yield f"{indent}{module.type_key} (as above)"
            continue
        seen.add(id(module))
        yield f"{indent}{module.type_key}{_names(module, operators)}"
        pending += [(imported, depth + 1) for imported in reversed(module.imported_modules)]


def parse_argument(text: str) -> Any:
    """Convert an argument of the command line; reads the array that ``@PATH`` names."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text.startswith("@"):
        from ..project.arrays import read_array

        return read_array(text[1:])
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    return _number(text)


def _number(text: str) -> Any:
    for number in (int, lambda digits: int(digits, 0), float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _names(module: Module, operators: Container[str]) -> str:
    found = module.function_names()
    names = [name for name in found if name not in operators]
    shown = names[:_MAX_NAMES]
    if more := len(names) - len(shown):
        shown.append(f"and {more} more")
    if folded := len(found) - len(names):
        shown.append(f"{folded} function{'' if folded == 1 else 's'} of operators")
    return f": {', '.join(shown)}" if shown else ""


def _call(function: Callable[..., Any], name: str, texts: Sequence[str], *, quiet: bool) -> None:
    values = [parse_argument(text) for text in texts]
    result = _result(lambda: function(*values))
    if quiet:
        write(str(result))
    else:
        pairs = zip(texts, values, strict=True)
        shown = ", ".join(text if text.startswith("@") else repr(v) for text, v in pairs)
        write(f"{name}({shown}) -> {result!r}")
    for text, value in zip(texts, values, strict=True):
        if text.startswith("@"):
            write(f"{text}: {value}")


def _result(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # the user sees any exception of the function
        raise PackerError(f"{type(error).__name__}: {error}") from error


def _profile(function: Callable[..., Any], name: str, texts: Sequence[str]) -> None:
    """Print the median times of as many calls as take half a second."""
    from time import perf_counter

    from runtime.modules.vm import VMExecutable
    from runtime.relax.vm import VirtualMachine

    owner = getattr(function, "owner", None)
    if not isinstance(owner, VMExecutable):
        raise PackerError(f"--profile: {name!r}: expected a function of bytecode, found {function}")
    values = [parse_argument(text) for text in texts]
    _result(lambda: function(*values))
    start = perf_counter()
    _result(lambda: function(*values))
    number = max(3, min(1000, int(_PROFILED_SECONDS / max(perf_counter() - start, 1e-6))))
    machine = VirtualMachine(owner)
    profile = _result(lambda: machine.profile(name, *values, number=number))
    write(f"{name}: median of {number} calls")
    write(str(profile))
    _write_limit(profile)


def _write_limit(profile: Profile) -> None:
    """Print how fast memory is read here, and which operator of few sums is furthest from it."""
    text = f"one thread reads {read_speed():.1f} GB/s here"
    some = [row for row in profile if row.nbytes and row.seconds > profile.seconds / 100]
    moving = [row for row in some if row.flops < _FEW_FLOPS * row.nbytes]
    if moving:
        slowest = min(moving, key=lambda row: row.gbytes)
        text += f"; {slowest.name} reads and writes {slowest.gbytes:.1f} GB/s, the least"
    write(text)


def read_speed() -> float:
    """Measure how many GB one thread reads per second: the best of three searches."""
    from time import perf_counter

    memory = bytearray(_READ_NBYTES)  # its pages are written first
    times = []
    for _ in range(3):
        start = perf_counter()
        memory.find(b"\1")
        times.append(perf_counter() - start)
    return 1e-9 * _READ_NBYTES / min(times)

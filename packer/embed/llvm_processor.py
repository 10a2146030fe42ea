"""The processor that LLVM generates code for, and how much it optimises."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from runtime.error import ExportError

from ..target import machine_word, native_triple

Made = TypeVar("Made")

NATIVE = "native"
DEFAULT_OPT = 2
_FEATURES = re.compile(r"[+-][\w.-]+(,[+-][\w.-]+)*")
_CPU = re.compile(r"[\w.-]+")
_UNKNOWN = re.compile(r"'([^'\n]+)' is not a recognized (processor|feature) for this target.*\n")


class Processor(NamedTuple):
    """A processor, as LLVM names it."""

    # LLVM's name, such as ``"x86-64-v3"`` or ``"cortex-a76"``; ``"native"`` is this machine's.
    # Empty: the oldest of the target.
    cpu: str = ""
    features: str = ""  # features that are added or removed: ``"+avx2,-fma"``
    opt: int = DEFAULT_OPT  # the level of optimisation, 0 to 3

    @property
    def is_named(self) -> bool:
        """True if it is not the oldest of the target."""
        return bool(self.cpu or self.features)

    def resolved(self, triple: str) -> Processor:
        """Return the same processor with this machine's name and features for ``"native"``.

        Raises ExportError if the triple is of another machine.
        """
        if self.cpu != NATIVE:
            return self
        if machine_word(triple) != machine_word(native_triple()):
            text = f"cpu 'native' for the target {triple!r}, expected a target of this machine"
            raise ExportError(f"{text}; name a processor of the target", module="llvm")
        from llvmlite import binding

        own = binding.get_host_cpu_features().flatten()
        features = ",".join(filter(None, (own, self.features)))
        return self._replace(cpu=binding.get_host_cpu_name(), features=features)

    def in_attributes(self, ir: str) -> str:
        """Return IR text whose functions name this processor, where they name one.

        A function may name a processor and features, as Clang writes them, which LLVM prefers to
        the target machine's. Its features are kept, since its code may need them.
        """
        ir = re.sub(r'"tune-cpu"="[^"]*" ?', "", ir)
        if self.cpu:
            ir = re.sub(r'"target-cpu"="[^"]*"', f'"target-cpu"="{self.cpu}"', ir)
        if self.features:
            found = r'"target-features"="([^"]+)"'
            ir = re.sub(found, rf'"target-features"="\1,{self.features}"', ir)
        return ir


PLAIN = Processor()


def processor_of(cpu: str | None, features: str, opt: int) -> Processor:
    """Check the form of what a user gives; LLVM checks the names.

    Raises ExportError if a processor or feature is not a name, or if LLVM does not have the level.
    """
    if cpu is not None and not _CPU.fullmatch(cpu):
        text = f"cpu {cpu!r}: expected a name, such as 'x86-64-v3', 'znver4' or 'native'"
        raise ExportError(text, module="llvm")
    if features and not _FEATURES.fullmatch(features):
        text = f"features {features!r}: expected names with + or -, as in '+avx2,-fma'"
        raise ExportError(text, module="llvm")
    if isinstance(opt, bool) or opt not in range(4):
        text = f"opt {opt!r}: expected 0, 1, 2 or 3, a level of optimisation"
        raise ExportError(text, module="llvm")
    return Processor(cpu or "", features, opt)


def refuse_unknown(create: Callable[[], Made], triple: str) -> Made:
    """Make a target machine, and refuse names that LLVM only warns of.

    Raises ExportError if LLVM does not know the processor or a feature.
    """
    with _written_to_stderr() as written:
        made = create()
    if found := _UNKNOWN.search("".join(written)):
        name, what = found.groups()
        text = f"{'cpu' if what == 'processor' else what} {name!r}: LLVM has none of this name"
        hint = "expected one that `llc -mcpu=help` or `clang --print-supported-cpus` lists"
        raise ExportError(f"{text} for {triple!r}, {hint}", module="llvm")
    return made


@contextlib.contextmanager
def _written_to_stderr() -> Iterator[list[str]]:
    """Collect the text that LLVM writes to the process's stderr; other text is passed on."""
    written: list[str] = []
    try:
        kept = os.dup(2)
    except OSError:  # closed, so there is no text
        yield written
        return
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield written
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            written.append(file.read().decode("utf-8", "replace"))
            if others := _UNKNOWN.sub("", written[0]):
                os.write(2, others.encode())

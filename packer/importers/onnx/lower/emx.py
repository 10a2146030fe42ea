"""The generator of C code for ONNX operators, emx-onnx-cgen: one model to one C text."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .recurrent import completed, corrected

if TYPE_CHECKING:
    import onnx

ENTRY = "dso_generic"  # the function of the text
_NEVER = 1 << 60  # bytes: no temporary on the heap, no weight in a file


def generate(model: onnx.ModelProto) -> str:
    """Return the C text of a model whose function is `ENTRY`.

    Raises
    ------
    Exception
        Of any class: the generator has no code for the model.
    """
    return corrected(str(_compiler().compile(model)))


@lru_cache(maxsize=1)
def _compiler() -> Any:
    """Make the generator once: it reads all of its templates, which takes seconds."""
    from emx_onnx_cgen import onnx_import
    from emx_onnx_cgen.compiler import Compiler, CompilerOptions

    attributes = onnx_import._node_attrs
    onnx_import._node_attrs = lambda node: completed(node.op_type, attributes(node))
    options = CompilerOptions(
        model_name=ENTRY,
        model_checksum="",
        large_temp_threshold_bytes=_NEVER,
        large_weight_threshold=_NEVER,
    )
    compiler = Compiler(options)
    with contextlib.suppress(AttributeError):  # a version that is made otherwise is only slower
        environment = compiler._emitter._env
        load = environment.get_template
        environment.get_template = lambda name: _Template(load, name)
    return compiler


class _Template:
    """A template that is read when it is used: a node uses one of 169."""

    def __init__(self, load: Any, name: str) -> None:
        self._load, self._name = load, name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._load(self._name), attribute)

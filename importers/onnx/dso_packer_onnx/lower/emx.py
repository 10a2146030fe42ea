"""The generator of C code for ONNX operators, emx-onnx-cgen: one model to one C text."""

from __future__ import annotations

import contextlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .recurrent import completed, corrected

if TYPE_CHECKING:
    import onnx

ENTRY = "dso_generic"  # the function of the text
_NO_ROOM = re.compile(
    r"if \(output_index >= output_capacity\) \{\s+return;(\s+\}\s+(\w+)\[output_index\])"
)
_COUNT_MORE = r"if (output_index >= output_capacity) {\n\2[0][0] = -(int64_t)++output_index;\n\
++selected_count;\ncontinue;\1"
_NEVER = 1 << 60  # bytes: no temporary on the heap, no weight in a file


def generate(model: onnx.ModelProto) -> str:
    """Return the C text of a model whose function is `ENTRY`.

    Raises Exception: of any class: the generator has no code for the model.
    """
    return _counted(corrected(str(_compiler().compile(model))))


def _counted(text: str) -> str:
    """Make a NonMaxSuppression count the boxes for which its result has no room.

    The first element is then minus their number with the others; without boxes nothing is written.
    The bounds of a Slice may have 64 bits.
    """
    if "output_capacity" not in text:
        return "#define idx_t int64_t\n" + text if "slice_limits" in text else text
    text = _NO_ROOM.sub(_COUNT_MORE, text)
    return re.sub(r"(\w+\[idx\]\[\d\]) = 0;", r"\1 = -1;", text)


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

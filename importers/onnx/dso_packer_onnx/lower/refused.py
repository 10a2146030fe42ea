"""Operators that no C function can be made of: the error, and the short list of causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packer import ExportError

from ..read.words import first_line, name_of_node

if TYPE_CHECKING:
    import onnx_ir as ir

# Each cause with the words of its message and what to do next.
CAUSES = {
    "string": "it takes or makes strings; convert them before the model",
    "random": "it draws random numbers; pass them to the model as an input",
    "shape": "the shape of a result depends on the data; give the input that decides it by "
    "input_values (--input-value), or use an operator of fixed shape",
    "open": "it has no code for open extents; give them by input_shapes",
    "image": "it needs an image library; decode before the model",
    "dtype": "a data type has no C code here; cast it",
    "unknown": "no C code can be made of it; replace it with other operators",
}


class OperatorRefusedError(ExportError):
    """An operator of a model has no C code."""

    cause: str  # a key of `CAUSES`

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


def refuse(node: ir.Node, cause: str, why: object = "") -> OperatorRefusedError:
    """Make the error about a node.

    Parameters
    ----------
    node : ir.Node
        It is named with its operator.
    cause : str
        A key of `CAUSES`.
    why : object
        Details: a text, or the error of another package.
    """
    details = first_line(why) if isinstance(why, BaseException) else str(why)
    what = f"{name_of_node(node)}: {CAUSES[cause]}"
    return OperatorRefusedError(f"{what} ({details})" if details else what, cause=cause)

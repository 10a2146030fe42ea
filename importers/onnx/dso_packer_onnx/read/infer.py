"""The types of all values for given shapes of the inputs, node by node.

ONNX's inference sees one node at a time, with the values of its small inputs. So a shape that the
graph computes is known wherever its inputs are, and an error names the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runtime.error import shown

from .agreement import LIKE_INPUT, axis_out_of_range, disagreement
from .evaluate import MOST_VALUES, evaluate
from .open_shapes import advice, may_declare
from .tensors import check_extents, check_type
from .types import Shape, Type, dtype_name, fit, merged
from .words import first_line, name_of_node, refusal, shape_text

if TYPE_CHECKING:
    import numpy
    import onnx_ir as ir

_KEEP_SHAPE = {
    *("Abs", "Cast", "CastLike", "Ceil", "Cos", "Exp", "Floor", "Identity", "Log", "Neg", "Not"),
    *("Reciprocal", "Relu", "Round", "Sigmoid", "Sin", "Softmax", "Sqrt", "Tanh"),
}
_BROADCAST = {"Add", "Div", "Mul", "Pow", "Sub"}


class Inference:
    """One pass over a graph, whose nodes it gets in order: see `step`.

    Parameters
    ----------
    model : ir.Model
        Its values are not changed.
    source : str
        What messages call the model.
    inputs : mapping of str to Shape
        The shape of each input.
    is_open : bool
        Whether an extent is open, so that declared numbers may be right for some calls only.
    complete : callable
        Gives the shape of an output whose extents data decides; None if they are not known.

    Attributes
    ----------
    types : dict
        The `Type` of each value of the main graph.
    constants : dict
        The numpy array of each small value that is the same in every call.
    """

    def __init__(
        self,
        model: ir.Model,
        source: str,
        inputs: Mapping[str, Shape],
        is_open: bool,
        complete: Callable[[ir.Node, int, Inference], Shape | None],
    ) -> None:
        self.types: dict[ir.Value, Type] = {}
        self.constants: dict[ir.Value, numpy.ndarray[Any, Any]] = {}
        self._model, self._source = model, source
        self._is_open, self._complete = is_open, complete
        self._born: set[ir.Node] = set()  # nodes whose data decides the shape of a result
        for value in model.graph.inputs:
            self.types[value] = Type(int(value.dtype), inputs[value.name])
        for value in model.graph.initializers.values():
            tensor = value.const_value
            self.types[value] = Type(int(tensor.dtype), tuple(tensor.shape.numpy()))
            if tensor.size <= MOST_VALUES and tensor.dtype.bitwidth >= 8:
                self.constants[value] = tensor.numpy()

    def step(self, node: ir.Node, proto: Any, declared: Mapping[ir.Value, Type]) -> None:
        """Infer the outputs of the next node, whose NodeProto is given.

        `declared` completes what inference does not know. Raises ExportError: with the name of the
        node: if its inputs do not fit it, if an output is not what the model declares, is too
        large, is not a tensor, or has no known shape.
        """
        text = axis_out_of_range(node, self.types)
        if text:
            raise self._refusal(node, text)
        found = self._infer(node, proto)
        computed = evaluate(node, proto, self.types, self.constants, found)
        for value, array in computed.items():
            found[value.name] = Type(found[value.name].dtype, tuple(array.shape))
        self.constants.update(computed)
        for value in node.outputs:
            if value.name:
                type_ = found.get(value.name)
                self.types[value] = self._agreed(node, value, type_, declared)
        text = disagreement(node, self.types, self.constants)
        if text and node not in self._born:  # a call compares them
            raise self._refusal(node, text)

    def _infer(self, node: ir.Node, proto: Any) -> dict[str, Type]:
        import onnx
        from onnx.onnx_cpp2py_export import shape_inference

        model = onnx.ModelProto(ir_version=10)
        for domain, version in self._model.graph.opset_imports.items():
            model.opset_import.add(domain=domain, version=version)
        # ONNX's inference wants scalars here; its definition of AffineGrid gives one element.
        as_scalars = node.op_type == "Range" and not node.domain
        self._add_inputs(model.graph, [*node.inputs], as_scalars)
        model.graph.name = "g"
        model.graph.node.append(proto)
        if node.op_type == "STFT" and "onesided" not in node.attributes and not node.domain:
            attribute = onnx.helper.make_attribute("onesided", 1)
            model.graph.node[0].attribute.append(attribute)  # inference takes it for 0
        for value in node.outputs:
            if value.name:
                model.graph.output.add(name=value.name)
        try:
            made = shape_inference.infer_shapes(model.SerializeToString(), True, True, False)
        except Exception as error:  # of a class of onnx, not a built-in one
            schema = onnx.defs.get_schema(proto.op_type, self._version(node), proto.domain)
            if not schema.has_type_and_shape_inference_function:
                return {}  # the definition as a function has a gap
            raise self._refusal(node, f"{_reason(error)}; {self._inputs_text(node)}") from error
        inferred = onnx.ModelProto.FromString(made)
        known = [one for one in inferred.graph.output if one.type.WhichOneof("value")]
        return {one.name: self._type(node, one) for one in known}

    def _inputs_text(self, node: ir.Node) -> str:
        shown_inputs = [
            f"{shown(value.name)} {dtype_name(self.types[value].dtype)}"
            f" {shape_text(self.types[value].shape)}"
            for value in node.inputs
            if value is not None
        ]
        return f"the inputs are {', '.join(shown_inputs[:6])}"

    def _version(self, node: ir.Node) -> int:
        return int(self._model.graph.opset_imports[node.domain])

    def _add_inputs(self, graph: Any, values: list[ir.Value | None], as_scalars: bool) -> None:
        import onnx

        for value in dict.fromkeys(values):
            if value is None:
                continue
            dtype, shape = self.types[value]
            if as_scalars and shape == (1,):
                shape = ()
            if value in self.constants:
                data = self.constants[value].tobytes()
                graph.initializer.add(name=value.name, data_type=dtype, dims=shape, raw_data=data)
            else:
                type_ = onnx.helper.make_tensor_type_proto(dtype, shape)
                graph.input.add(name=value.name, type=type_)

    def _type(self, node: ir.Node, value: Any) -> Type:
        check_type(value.type, self._source, f"{name_of_node(node)}: output {shown(value.name)}")
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            return Type(tensor.elem_type, None)
        shape = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        return Type(tensor.elem_type, tuple(shape))

    def _agreed(
        self,
        node: ir.Node,
        value: ir.Value,
        found: Type | None,
        all_declared: Mapping[ir.Value, Type],
    ) -> Type:
        """Return the type of an output: inferred, and completed by the declared one."""
        where, declared = f"output {shown(value.name)}", all_declared.get(value)
        if node.op_type in LIKE_INPUT and not node.domain and (found is None or not found.shape):
            found = self.types[node.inputs[0]]
        is_declarable = may_declare(node, self.constants)
        found = found or (declared if is_declarable else None)
        if found is None:
            text = f"{where}: its type and shape are unknown, {advice(node, self.constants)}"
            raise self._refusal(node, text)
        dtype, shape = found
        if node.op_type == "Expand" and node.inputs[1] not in self.constants:
            shape = None  # ONNX takes the data to fit the input; a call compares them
        if declared is not None:
            if dtype != declared.dtype:
                text = f"{where}: type, expected {dtype_name(declared.dtype)} as declared, found"
                raise self._refusal(node, f"{text} {dtype_name(dtype)}")
            if self._is_open and len(shape or ()) == len(declared.shape or ()):
                declared = Type(dtype, None)  # exporters declare the extents of an example
            if not fit(shape, declared.shape):
                text = f"{where}: shape, expected {shape_text(declared.shape)} as declared, found"
                raise self._refusal(node, f"{text} {shape_text(shape)}")
            if is_declarable:
                shape = merged(shape, declared.shape)
        if is_declarable and (shape is None or None in shape):
            wanted = self._wanted(value, all_declared)
            shape = merged(shape, wanted) if fit(shape, wanted) else shape
        if shape is None or None in shape:
            born = self._complete(node, node.outputs.index(value), self)
            if born is not None:
                self._born.add(node)
                shape = born
        if shape is None or None in shape:
            text = f"{where}: shape, expected one that follows from the inputs, found"
            raise self._refusal(node, f"{text} {shape_text(shape)}; {advice(node, self.constants)}")
        check_extents(shape, self._source, f"{name_of_node(node)}: {where}")
        return Type(dtype, shape)

    def _wanted(self, value: ir.Value, declared: Mapping[ir.Value, Type]) -> Shape | None:
        """Return the shape that an operator after it declares, if it keeps the shape."""
        for _ in range(32):
            for node, index in value.uses():
                others = [self.types[one] for one in node.inputs if one in self.types]
                if node.op_type in _KEEP_SHAPE and not index and not node.domain:
                    break
                if node.op_type in _BROADCAST and all(one.shape == () for one in others):
                    break
            else:
                return None
            value = node.outputs[0]
            found = declared.get(value)
            if found is not None and found.shape is not None and None not in found.shape:
                return found.shape
        return None

    def _refusal(self, node: ir.Node, text: str) -> Exception:
        return refusal(self._source, f"{name_of_node(node)}: {text}")


def _reason(error: BaseException) -> str:
    """The words of an error of inference, without the codes before them."""
    text = re.split(r"\[\w+Error\] ", str(error))[-1].strip()
    text = re.sub(r"^Inference error\(s\): |\(op_type:[^)]*\): ", "", text)
    return first_line(ValueError(text or str(error)))

"""A folder of models over HTTP: the Open Inference Protocol, version 2, with JSON tensors.

MODELS=models uvicorn app:app --workers 2
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import runtime

BITS = (8, 16, 32, 64)
# The name of a data type in the protocol, by its name in NumPy.
DATATYPES = {
    "bool": "BOOL",
    **{f"{kind}{bits}": f"{kind.upper()}{bits}" for kind in ("int", "uint") for bits in BITS},
    **{f"float{bits}": f"FP{bits}" for bits in BITS[1:]},
}
DTYPES = {datatype: dtype for dtype, datatype in DATATYPES.items()}

# Each worker has a pool. The pages of a model are in memory once, for all of them.
pool = runtime.Pool(os.environ.get("MODELS", "models"), budget=os.environ.get("BUDGET"))
app = FastAPI(title="dso-packer")


class InputTensor(BaseModel):
    """An array in a request: its values in C order, as a flat list or as nested ones."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class InferenceRequest(BaseModel):
    """The body of a request."""

    inputs: list[InputTensor]
    id: str | None = None


class AnswerError(Exception):
    """An answer without tensors: the status of HTTP, and a text for the client."""

    def __init__(self, status: int, text: object) -> None:
        super().__init__(str(text))
        self.status = status


@app.get("/v2")
def server() -> dict[str, Any]:
    """Describe this server."""
    return {"name": "dso-packer", "version": runtime.__version__, "extensions": []}


@app.get("/v2/health/live")
def is_live() -> dict[str, bool]:
    """Answer while the process runs."""
    return {"live": True}


@app.get("/v2/health/ready")
def is_ready() -> dict[str, bool]:
    """Answer when models can be asked for: they are loaded on demand."""
    return {"ready": True}


@app.get("/v2/models/{name}/ready")
def is_model_ready(name: str) -> dict[str, Any]:
    """Load the model, unless it is in memory."""
    pool[name]
    return {"name": name, "ready": True}


@app.get("/v2/models/{name}")
def model(name: str) -> dict[str, Any]:
    """Describe the inputs and outputs; an extent that each request may choose is -1."""
    module = pool[name]
    return {
        "name": name,
        "versions": [],
        "platform": "dso-packer",
        "inputs": [_described(info) for info in module.inputs],
        "outputs": [_described(info) for info in module.outputs],
    }


@app.post("/v2/models/{name}/infer")
def infer(name: str, request: InferenceRequest) -> dict[str, Any]:
    """Call ``main``; FastAPI runs this in a thread, and the call releases Python's lock."""
    module = pool[name]
    arrays = {tensor.name: _array(tensor) for tensor in request.inputs}
    names = [info.name for info in module.inputs]
    if sorted(arrays) != sorted(names) or len(arrays) != len(request.inputs):
        raise AnswerError(400, f"inputs: expected each of {names} once, found {sorted(arrays)}")
    try:
        found = module["main"](*(arrays[name] for name in names))
    except (TypeError, ValueError) as error:
        raise AnswerError(400, error) from error
    except Exception as error:
        raise AnswerError(500, error) from error
    results = [found] if len(module.outputs) == 1 else found
    outputs = [
        _tensor(info.name, np.from_dlpack(result))
        for info, result in zip(module.outputs, results, strict=True)
    ]
    answer = {"model_name": name, "outputs": outputs}
    return answer if request.id is None else {**answer, "id": request.id}


@app.get("/v2/repository/statistics")
def statistics() -> dict[str, int]:
    """Describe the pool of the worker that answers."""
    return {"process": os.getpid(), **pool.statistics()._asdict()}


def _described(info: runtime.TensorInfo) -> dict[str, Any]:
    shape = [extent if isinstance(extent, int) else -1 for extent in info.shape]
    return {"name": info.name, "datatype": DATATYPES.get(info.dtype, "BYTES"), "shape": shape}


def _array(tensor: InputTensor) -> np.ndarray:
    if tensor.datatype not in DTYPES:
        known = ", ".join(DTYPES)
        raise AnswerError(
            400, f"{tensor.name}: datatype {tensor.datatype}, expected one of {known}"
        )
    try:
        return np.asarray(tensor.data, DTYPES[tensor.datatype]).reshape(tensor.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise AnswerError(400, f"{tensor.name}: {error}") from error


def _tensor(name: str, array: np.ndarray) -> dict[str, Any]:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise AnswerError(500, f"{name}: infinite or no number, which JSON cannot express")
    return {
        "name": name,
        "datatype": DATATYPES[array.dtype.name],
        "shape": list(array.shape),
        "data": array.ravel().tolist(),
    }


@app.exception_handler(AnswerError)
@app.exception_handler(runtime.PackerError)
def answer_of(_request: Request, error: Exception) -> JSONResponse:
    """Answer with the protocol's object."""
    status = 404 if isinstance(error, runtime.ModelNotFoundError) else getattr(error, "status", 500)
    return JSONResponse({"error": str(error)}, status)

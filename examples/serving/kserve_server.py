"""A folder of models as KServe mounts it: <folder>/<name>/model.so, served by the kserve package.

python kserve_server.py write FOLDER NAME model.so     stores a model
python kserve_server.py serve FOLDER [PORT]            serves the folder
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelRepository, ModelServer
from kserve.errors import InvalidInput
from kserve.utils.numpy_codec import from_np_dtype

import runtime

FILE = "model.so"


class PackedModel(Model):
    """A packed library as a model of KServe."""

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name)
        self.path = path

    def load(self) -> bool:
        """Map the library; KServe calls this before the first request."""
        self.module = runtime.load(self.path)
        self.ready = True
        return self.ready

    def get_input_types(self) -> list[dict]:
        """Describe the inputs; an extent that each request may choose is -1."""
        return [_described(info) for info in self.module.inputs]

    def get_output_types(self) -> list[dict]:
        """Describe the outputs."""
        return [_described(info) for info in self.module.outputs]

    async def predict(
        self,
        payload: InferRequest,
        headers: dict[str, str] | None = None,
        response_headers: dict[str, str] | None = None,
    ) -> InferResponse:
        """Call ``main`` with the inputs by name."""
        arrays = {tensor.name: np.ascontiguousarray(tensor.as_numpy()) for tensor in payload.inputs}
        names = [info.name for info in self.module.inputs]
        if sorted(arrays) != sorted(names):
            raise InvalidInput(f"inputs: expected {names}, found {sorted(arrays)}")
        found = self.module["main"](*(arrays[name] for name in names))
        results = [found] if len(self.module.outputs) == 1 else found
        outputs = []
        for info, result in zip(self.module.outputs, results, strict=True):
            array = np.from_dlpack(result)
            output = InferOutput(info.name, list(array.shape), from_np_dtype(array.dtype))
            output.set_data_from_numpy(array, binary_data=False)
            outputs.append(output)
        return InferResponse(payload.id, self.name, outputs)


class PackedRepository(ModelRepository):
    """The folder of models that KServe mounts."""

    def load_model(self, name: str) -> bool:
        """Load ``<folder>/<name>/model.so``."""
        model = PackedModel(name, Path(self.models_dir) / name / FILE)
        model.load()
        self.update(model)
        return True

    def load(self, name: str) -> bool:
        """Load a model that a client asks for by name."""
        return self.load_model(name)


def write(folder: Path, name: str, library: Path) -> None:
    """Store a library as a model; one that is there is replaced at once, by a rename."""
    target = folder / name / FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(f".{os.getpid()}")
    shutil.copyfile(library, beside)
    beside.rename(target)


def _described(info: runtime.TensorInfo) -> dict:
    shape = [extent if isinstance(extent, int) else -1 for extent in info.shape]
    return {"name": info.name, "datatype": from_np_dtype(np.dtype(info.dtype)), "shape": shape}


def main(args: list[str]) -> None:
    """Store a model, or serve the folder."""
    match args:
        case ["write", folder, name, library]:
            write(Path(folder), name, Path(library))
        case ["serve", folder, *port]:
            repository = PackedRepository(folder)
            repository.load_models()
            server = ModelServer(
                http_port=int(port[0]) if port else 8080,
                enable_grpc=False,
                registered_models=repository,
            )
            server.start(list(repository.get_models().values()))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

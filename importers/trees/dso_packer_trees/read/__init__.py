"""Readers: the model of a library, as a file or an object, becomes forests and steps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packer import ExportError
from packer.files.text import path_error

from . import catboost, lightgbm, onnx, pipeline, sklearn, xgboost, ydf

if TYPE_CHECKING:
    from ..forest import Forest
    from ..steps import Steps

_EXPECTED = (
    "expected a model file of LightGBM (.txt), XGBoost (.json, .ubj), CatBoost (.json), ONNX-ML or "
    "YDF (a folder), or a model of LightGBM, XGBoost, CatBoost, YDF, scikit-learn or ONNX"
)

# By the package of an object's class.
_READERS: dict[str, Any] = {
    "xgboost": xgboost,
    "lightgbm": lightgbm,
    "catboost": catboost,
    "onnx": onnx,
    "sklearn": sklearn,
    "ydf": ydf,
}


def read_model(source: Any) -> tuple[list[Forest | Steps], str]:
    """Return the parts of a model, each of the results of the one before, and its name in messages.

    Raises ExportError if the source is not a supported model.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if path.is_dir():
            return [ydf.from_folder(str(path), path.name)], path.name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise path_error(path, error.strerror or str(error)) from error
        return _of_bytes(data, path.name), path.name
    where = type(source).__name__
    if pipeline.is_pipeline(source):
        return pipeline.from_object(source, where, _of_object), where
    return _of_object(source, where), where


def _of_object(source: Any, where: str) -> list[Forest | Steps]:
    modules = {cls.__module__.partition(".")[0] for cls in type(source).__mro__}
    for name, reader in _READERS.items():
        if name in modules:
            return _listed(reader.from_object(source, where))
    raise ExportError(f"from_trees: {_EXPECTED}, found {source!r}")


def _of_bytes(data: bytes, where: str) -> list[Forest | Steps]:
    for reader in (lightgbm, xgboost, catboost, onnx):
        if reader.is_model(data[:4096]):
            return _listed(reader.from_bytes(data, where))
    raise ExportError(f"{where}: {_EXPECTED}, found a file that begins with {data[:16]!r}")


def _listed(found: Any) -> list[Forest | Steps]:
    return found if isinstance(found, list) else [found]

"""Forests of decision trees: a model becomes tables in the library, and C code that reads them.

`read` has a reader for each library: it makes forests (`forest`) and the steps of pipelines
(`steps`); `pack` makes the tables, `program` the modules. `support` is the C code. No training
library is imported unless its object is passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packer import ExportError
from packer.files.progress import silent
from packer.levels.note import mark_imported
from packer.levels.table import DEFAULT_LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from packer.relax import VMExecutable


def from_trees(
    model: Any, *, raw: bool = False, progress: Callable[[str], None] = silent
) -> VMExecutable:
    """Make a tree of modules of a forest or pipeline: its library needs neither Python nor NumPy.

    Parameters
    ----------
    model : path or object
        A model file of LightGBM (text), XGBoost (JSON, UBJSON), CatBoost (JSON), YDF (a folder)
        or ONNX-ML; a trained model of these packages; a tree, forest, gradient boosting,
        isolation forest, linear model, SVM or pipeline of scikit-learn.
    raw : bool
        True for scores without the link: margins, as XGBoost's ``output_margin`` and LightGBM's
        ``raw_score``.
    progress : callable
        Gets the name of each step.

    Returns
    -------
    VMExecutable
        Its function ``predict`` takes rows, float32 or float64 ``[n, features]``, and returns new
        tensors of scores: ``[n]``, or ``[n, scores]`` if there are several. ``leaves`` returns
        int32 ``[n, trees]``, the library's numbers of the leaves. A row ``[features]`` has a
        result without ``n``. A missing value is NaN.

    Raises
    ------
    ExportError
        If the file cannot be read or is damaged, a package is missing, or the model needs what is
        not supported; names the tree and node.

    Examples
    --------
    ::

        module = packer.from_trees("model.ubj")
        path = packer.export_library(module, "score.so")
        predict = runtime.load(path)["predict"]
        scores = predict(rows)
    """
    try:
        from .program import model_module
        from .read import read_model
    except ModuleNotFoundError as error:
        if str(error.name).startswith(("packer.", "dso_packer_trees.")):
            raise
        text = f"packer.from_trees needs the package {error.name}: pip install 'dso-packer[trees]'"
        raise ExportError(text) from error
    progress("read the model")
    parts, where = read_model(model)
    progress("make its tables")
    if raw:
        parts[-1] = parts[-1].without_link()
    module = model_module(parts, where)
    mark_imported(module, "the code", levels=DEFAULT_LEVELS)
    return module

"""runtime.torch: a library's function as a torch.nn.Module, without a copy; kept whole."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

from ..support import models, needs
from ..support.process import run_python

torch = needs.module("torch", "torch")

SOURCE = """
#include <dso_packer.h>
#include <stdint.h>
static int64_t seen[2];
void scale(const DLTensor *x, DLTensor *y) {
  const float *from = x->data;
  float *to = y->data;
  for (int64_t i = 0; i < x->shape[0]; i++) to[i] = 2 * from[i];
  seen[0] = (int64_t)(uintptr_t)from;
  seen[1] = (int64_t)(uintptr_t)to;
}
int64_t address(int64_t which) { return seen[which]; }
void minmax(const float *x, float *low, float *high, int64_t n) {
  *low = *high = x[0];
  for (int64_t i = 0; i < n; i++) {
    if (x[i] < *low) *low = x[i];
    if (x[i] > *high) *high = x[i];
  }
}
"""
FUNCTIONS = {
    "scale": "void(const DLTensor *x, DLTensor *y)",
    "address": "int64_t(int64_t which)",
}
WEIGHT = b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """A library whose entry scales, over weights."""
    root = packer.CSourceModule(
        SOURCE,
        functions={
            **FUNCTIONS,
            "minmax": "void(const float *x, float *low, float *high, int64_t n)",
        },
    )
    weights = len(WEIGHT).to_bytes(8, "little") + WEIGHT + bytes(8)
    root.import_module(runtime.SafetensorsModule(weights))
    return packer.export_library(root, tmp_path_factory.mktemp("torch") / "scale.so", entry="scale")


@pytest.fixture
def scale(path) -> Any:
    """The entry, with outputs like the input."""
    return runtime.torch.PackedModule(path, outputs=torch.empty_like)


def through_save(module: Any, **options: Any) -> Any:
    """torch.save, torch.load."""
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False, **options)


def test_entry_with_outputs_made_by_a_function(scale) -> None:
    """It is a module like others: called, in a Sequential, printed."""
    x = torch.arange(3.0)
    assert scale(x).tolist() == [0, 2, 4]
    assert torch.nn.Sequential(scale, torch.nn.ReLU(), scale)(x).tolist() == [0, 4, 8]
    assert repr(scale).startswith("PackedModule(<LibraryModule '")
    assert repr(scale).endswith(", entry='scale')")


def test_tensors_go_in_and_out_without_a_copy(scale) -> None:
    """The function sees the addresses that PyTorch has."""
    x = torch.ones(4)
    y = scale(x)
    address = scale.library["address"]
    assert [address(0), address(1)] == [x.data_ptr(), y.data_ptr()]


def test_outputs_passed_in_are_written(path) -> None:
    """Without a function for them, all arguments go through as they are."""
    module = runtime.torch.PackedModule(path)
    x, y = torch.ones(4), torch.zeros(4)
    assert module(x, y) is None
    assert y.tolist() == [2, 2, 2, 2]
    assert module.library["address"](1) == y.data_ptr()


def test_several_outputs_are_returned_unchanged(path) -> None:
    """A tuple, of an entry that is named, from a module that is loaded; other results too."""
    library = runtime.load(path)

    def outputs(x: Any) -> tuple[Any, Any]:
        return torch.empty(1), torch.empty(1)

    class MinMax(runtime.torch.PackedModule):
        def forward(self, x: Any) -> Any:
            low, high = outputs(x)
            super().forward(x, low, high, len(x))
            return low, high

    assert MinMax(library, "minmax")(torch.tensor([3.0, 1.0, 2.0])) == (1, 3)
    assert runtime.torch.PackedModule(library, "address")(0) == library["address"](0)


def test_tensor_that_a_function_returns_is_a_view() -> None:
    """A runtime.Tensor arrives as a torch.Tensor over the same memory."""

    class Source(runtime.Module):
        made = runtime.Tensor(bytearray(b"\0\0\x80\x3f" * 2), (2,), "float32")

        def find_function(self, name: str) -> Any:
            return (lambda: self.made) if name == "main" else None

    source = Source()
    result = runtime.torch.PackedModule(source)()
    assert result.tolist() == [1, 1]
    memoryview(source.made)[0] = 5
    assert result.tolist() == [5, 1]


def test_gradient_is_not_lost_in_silence(scale) -> None:
    """A lost gradient is an error where gradients are recorded, and is ignored elsewhere."""
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="no gradient flows through a library"):
        scale(x)
    with torch.no_grad():
        y = scale(x)
    assert y.tolist() == [2, 2, 2]
    assert scale.library["address"](0) == x.data_ptr()


@pytest.mark.parametrize(
    "keep",
    [
        through_save,
        lambda m: through_save(m, map_location="cpu"),
        lambda m: pickle.loads(pickle.dumps(m)),
        lambda m: pickle.loads(pickle.dumps(m, protocol=5)),
        copy.deepcopy,
        copy.copy,
    ],
    ids=["save", "save-map", "pickle", "pickle5", "deepcopy", "copy"],
)
def test_module_is_kept_whole(keep, scale) -> None:
    """Alone and within a model; equal bytes are one library."""
    kept = keep(scale)
    assert kept is not scale
    assert (kept.entry, kept.outputs) == ("scale", torch.empty_like)
    assert kept.library is scale.library
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), scale)
    with torch.no_grad():
        assert torch.equal(keep(model)(torch.ones(3)), model(torch.ones(3)))


def test_saved_device_tree_keeps_its_bytes(tmp_path) -> None:
    """A tree without a library views the bytes that were loaded, which stay as long as it does."""

    class Runs(runtime.Module):
        def find_function(self, name: str) -> Any:
            return int

    module = runtime.torch.PackedModule(Runs(), "f")
    module.library = runtime.DeviceModule("cuda", b"code" * 4096, "ptx", [])
    state = module.__getstate__()
    data, homes = state["library"]
    assert (data.dtype, homes) == (torch.uint8, [])
    from runtime.torch import _bytes_of

    view = _bytes_of(data)
    del state, data
    tree = runtime.deserialize_module_from_bytes(view)
    del view
    torch.ones(1 << 16)
    assert bytes(tree.data) == b"code" * 4096


def test_weights_only_refuses_it(scale) -> None:
    """Loading runs the library's code, so torch.load needs an explicit option."""
    file = io.BytesIO()
    torch.save(scale, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="weights_only"):
        torch.load(file)


def test_state_dict_is_that_of_the_rest(scale) -> None:
    """It has no parameters; a model with it can be saved by its state_dict as any other."""
    assert scale.state_dict() == {}
    model, other = (torch.nn.Sequential(torch.nn.Linear(3, 3), scale) for _ in range(2))
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        assert torch.equal(other(torch.ones(3)), model(torch.ones(3)))
    assert list(model.state_dict()) == ["0.weight", "0.bias"]


def test_saved_module_works_in_a_fresh_process(scale, path, tmp_path) -> None:
    """With neither the library's file nor packer."""
    torch.save(scale, tmp_path / "model.pt")
    code = """
import json, sys, torch
module = torch.load(sys.argv[1], weights_only=False)
print(json.dumps([module(torch.ones(2)).tolist(), list(module.library.weights)]))
"""
    blocked = ("packer", "llvmlite", "elftools")
    assert run_python(code, str(tmp_path / "model.pt"), blocked=blocked) == [[2, 2], ["w"]]


def test_import_without_torch_names_the_package() -> None:
    """An ImportError that names the package; the rest of the runtime does without."""
    code = """
import json, sys, runtime
assert "torch" not in sys.modules
texts = []
for use in ("import runtime.torch", "runtime.torch"):
    try:
        exec(use)
    except ImportError as error:
        texts.append([error.name, str(error)])
print(json.dumps(texts))
"""
    said = ["torch", "runtime.torch needs PyTorch: pip install torch (torch is blocked)"]
    assert run_python(code, blocked=("torch",)) == [said, said]


def test_unknown_entry_is_refused_when_it_is_made(path) -> None:
    """Not at the first call."""
    with pytest.raises(runtime.FunctionNotFoundError, match="has no function 'scael'"):
        runtime.torch.PackedModule(path, "scael")


def test_a_model_is_a_drop_in(tmp_path: Path) -> None:
    """Tensors in and out, by position or name, in eval mode; gradients are refused, not lost."""
    path = packer.export_library(models.model(), tmp_path / "m.so")
    module = torch.nn.Sequential(runtime.torch.PackedModule(path)).eval()
    x = torch.randn(3, 40)
    scores, hidden = module(x)
    for found, expected in zip((scores, hidden), models.expected(x.numpy()), strict=True):
        assert torch.allclose(found, torch.from_numpy(expected), atol=1e-5)
    scores += 1  # a result belongs to the caller
    with torch.inference_mode():
        assert torch.equal(module[0](**{"x.1": x})[1], hidden)
        assert torch.equal(module[0](x_1=x.t().contiguous().t())[1], hidden)
    wanted = x.clone().requires_grad_()
    with pytest.raises(ValueError, match="no gradient flows through a library"):
        module(wanted)
    with pytest.raises(ValueError, match="no gradient flows through a library"):
        module[0](x_1=wanted)
    with torch.no_grad():
        assert torch.equal(module(wanted)[1], hidden)
    assert list(module.parameters()) == []


def test_a_library_by_reference_is_saved_as_its_path(path, tmp_path, monkeypatch) -> None:
    """The file of torch.save is small then, and so is a pickle."""
    monkeypatch.setenv("DSO_CACHE", str(tmp_path / "store"))
    copied = tmp_path / "copied.so"
    copied.write_bytes(path.read_bytes())
    module = runtime.torch.PackedModule(runtime.by_reference(runtime.load(copied)), "scale")
    torch.save(module, tmp_path / "module.pt")
    assert (tmp_path / "module.pt").stat().st_size < copied.stat().st_size
    again = torch.load(tmp_path / "module.pt", weights_only=False)
    x, y = torch.ones(3), torch.empty(3)
    again(x, y)
    assert y.tolist() == [2, 2, 2]
    assert again.library is module.library

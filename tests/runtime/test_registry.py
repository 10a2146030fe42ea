"""Registries: loaders by type key, entry points, global functions."""

from __future__ import annotations

import subprocess
import sys

import pytest

import runtime
from runtime.registry import find_loader


def test_second_loader_for_a_key_is_refused() -> None:
    """A duplicate is an error, also for a built-in key or an alias."""
    runtime.register_loader("test.once", "test.alias")(lambda reader: runtime.Module())
    for key in ("test.once", "test.alias", "cuda"):
        with pytest.raises(ValueError, match=f"'{key}' already has a loader"):
            runtime.register_loader(key)(lambda reader: runtime.Module())


def test_unknown_key_names_itself_and_the_known_ones() -> None:
    """The error has the key, the known keys, and the fix."""
    with pytest.raises(runtime.LoaderNotFoundError, match="'no.such' has no loader here") as info:
        find_loader("no.such")
    assert info.value.type_key == "no.such"
    assert {"_lib", "cuda", "const_loader"} <= set(info.value.known)
    assert "register_loader" in str(info.value)
    assert isinstance(info.value, LookupError)


def test_json_runtimes_share_a_loader() -> None:
    """Any key that ends in _json is a JSON runtime."""
    module = runtime.JSONRuntimeModule("any_json", "main", "{}", ["w"])
    back = runtime.deserialize_module_from_bytes(runtime.serialize_module_to_bytes(module))
    assert (back.type_key, back.symbol, back.graph_json) == ("any_json", "main", "{}")
    assert back.const_names == ("w",)


def test_entry_point_provides_a_loader_when_its_key_is_missing(tmp_path) -> None:
    """An installed package that offers the key is imported on the first need, not before."""
    (tmp_path / "offer.py").write_text(
        "import runtime\n"
        "class Offered(runtime.Module):\n"
        "    type_key = 'offer.key'\n"
        "def load(reader):\n"
        "    return Offered()\n"
    )
    info = tmp_path / "offer-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offer\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[dso_packer.loaders]\noffer.key = offer:load\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import runtime\n"
        "from runtime.registry import find_loader\n"
        "find_loader('cuda')\n"
        "assert 'offer' not in sys.modules and 'importlib.metadata' not in sys.modules\n"
        "assert find_loader('offer.key')(None).type_key == 'offer.key'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_global_function_is_found_listed_and_replaced_only_on_request() -> None:
    """register_func, get_global_func and list_global_func_names agree."""
    runtime.register_func("test.f")(lambda: 1)
    assert runtime.get_global_func("test.f")() == 1
    assert "test.f" in runtime.list_global_func_names()
    with pytest.raises(ValueError, match=r"'test\.f' is already registered"):
        runtime.register_func("test.f")(lambda: 2)
    runtime.register_func("test.f", override=True)(lambda: 2)
    assert runtime.get_global_func("test.f")() == 2


def test_decorators_without_a_name_are_refused() -> None:
    """``@runtime.register_func`` would register nothing, and put a decorator in f's place."""
    for decorator in (runtime.register_func, runtime.register_loader):
        with pytest.raises(TypeError, match=f"takes a name: @{decorator.__name__}"):
            decorator(lambda: 1)


def test_missing_global_function_names_near_ones() -> None:
    """The error lists names that are like it."""
    runtime.register_func("test.convolve")(lambda: 1)
    with pytest.raises(runtime.FunctionNotFoundError, match=r"near names: 'test\.convolve'"):
        runtime.get_global_func("test.convolv")

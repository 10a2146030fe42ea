"""From modules to a library to calls in a fresh process, by every embedder."""

from __future__ import annotations

import hashlib
import os

import pytest

import packer
import runtime

from .support.host_modules import device, host
from .support.process import run_python

PAGE = 4096


@pytest.mark.parametrize("embed", ["c", "llvm", "segment"])
@pytest.mark.parametrize("nbytes", [0, 1, PAGE - 1, PAGE, PAGE + 1, (1 << 20) + 5])
def test_payload_of_any_size_is_restored_in_a_fresh_process(embed, nbytes, tmp_path) -> None:
    """Every embedder puts the same bytes at the same symbol, at the sizes around the edges."""
    data = os.urandom(nbytes)
    root = host()
    root.import_module(device(data))
    path = packer.export_library(root, tmp_path / "lib.so", build=packer.Build(embed=embed))
    code = (
        "import runtime, sys, hashlib, json\n"
        "m = runtime.load(sys.argv[1]); d = m.imported_modules[0]\n"
        "print(json.dumps([m['add'](40, 2), d.type_key, hashlib.sha256(d.data).hexdigest()]))"
    )
    assert run_python(code, str(path)) == [42, "cuda", hashlib.sha256(data).hexdigest()]


def test_the_documents_own_words_hold(tmp_path) -> None:
    """On a machine without CUDA, the loaded tree shows the library and the module it imports."""
    root = host()
    root.import_module(device())
    packer.export_library(root, tmp_path / "deploy.so")
    loaded = runtime.load(tmp_path / "deploy.so")
    assert loaded.type_key == "library"
    assert loaded.imported_modules[0].type_key == "cuda"


def test_tree_without_host_code_loads(tmp_path) -> None:
    """A library that only carries modules has a device module as its root."""
    root = device(b"a")
    root.import_module(device(b"b"))
    loaded = runtime.load(packer.export_library(root, tmp_path / "lib.so"))
    assert bytes(loaded.data) == b"a"
    assert bytes(loaded.imported_modules[0].data) == b"b"


def test_entry_is_called_by_calling_the_module(tmp_path) -> None:
    """entry= names the function; the root is called through its imports."""
    root = device()
    root.import_module(host())
    loaded = runtime.load(packer.export_library(root, tmp_path / "lib.so", entry="add"))
    assert loaded.entry_name == "add"
    assert loaded(40, 2) == 42


def test_runtime_alone_loads_and_runs_a_packed_library(tmp_path) -> None:
    """Where packer, llvmlite, elftools, cffi, pycparser and numpy cannot be imported."""
    root = host()
    root.import_module(device())
    root.import_module(runtime.ConstLoaderModule({"w": b"1234"}, {}))
    path = packer.export_library(root, tmp_path / "lib.so", entry="add")
    code = (
        "import runtime, sys, json\n"
        "m = runtime.load(sys.argv[1])\n"
        "print(json.dumps([m(40, 2), [c.type_key for c in m.imported_modules]]))"
    )
    blocked = ("packer", "llvmlite", "elftools", "cffi", "pycparser", "numpy")
    assert run_python(code, str(path), blocked=blocked) == [42, ["cuda", "const_loader"]]


def test_compiling_without_packer_names_the_package_to_install(tmp_path) -> None:
    """The one upward dependency: a runtime alone cannot export, and the error says so."""
    code = (
        "import runtime, json\n"
        "try: runtime.Module().export_library('x.so')\n"
        "except runtime.PackerError as e: print(json.dumps(str(e)))"
    )
    assert "pip install dso-packer" in run_python(code, blocked=("packer",))


def test_module_exports_itself(tmp_path) -> None:
    """Module.export_library is packer.export_library."""
    path = host().export_library(tmp_path / "lib.so", entry="add")
    assert runtime.load(path)(1, 2) == 3


@pytest.mark.parametrize("name", ["gamma", "index", "read", "malloc_usable_size"])
def test_function_named_as_one_of_libc_is_the_librarys_own(name, tmp_path) -> None:
    """-Bsymbolic: a kernel of that name is not bound to libm's or libc's."""
    source = f"long {name}(long x) {{ return x + 1; }}\nlong use(long x) {{ return {name}(x); }}"
    functions = {name: "long(long x)", "use": "long(long x)"}
    module = packer.CSourceModule(source, functions=functions, options=["-fno-builtin"])
    loaded = runtime.load(packer.export_library(module, tmp_path / "lib.so"))
    assert (loaded[name](41), loaded["use"](41)) == (42, 42)


def test_unknown_type_is_carried_through_the_manifest_and_explains_itself(tmp_path) -> None:
    """Known where it was made, carried where it is not, written again unchanged."""
    path = tmp_path / "lib.so"
    make = (
        "import packer, runtime, sys, json\n"
        "class Own(runtime.Module):\n"
        "    type_key, property_mask = 'test.own', 1\n"
        "    def save_to_binary(self, writer): writer.write_bytes(b'abc')\n"
        "root = packer.CSourceModule('int x;')\n"
        "root.import_module(Own()); root.import_module(runtime.MetadataModule())\n"
        "packer.export_library(root, sys.argv[1]); print('0')"
    )
    run_python(make, str(path))
    root = runtime.load(path)
    own, metadata = root.imported_modules
    assert (own.type_key, metadata.type_key) == ("test.own", "metadata_module")
    assert bytes(own.payload) == (3).to_bytes(8, "little") + b"abc"
    with pytest.raises(runtime.LoaderNotFoundError, match="'test.own' has no loader here"):
        own.get_function("f")

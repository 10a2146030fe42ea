"""From modules to a library to calls in a fresh process, by every embedder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

import packer
import runtime

from .process import run_python

ADD = "long add(long a, long b) { return a + b; }"
ADD_DECLARED = {"add": "long(long a, long b)"}
MUL = "define i64 @mul(i64 %a, i64 %b) { %c = mul i64 %a, %b  ret i64 %c }"
PAGE = 4096


def host() -> packer.CSourceModule:
    """A host module with one function."""
    return packer.CSourceModule(ADD, functions=ADD_DECLARED)


def device(data: bytes = b".version 7.0") -> runtime.DeviceModule:
    """A CUDA module that is only carried."""
    info = runtime.FunctionInfo("k", ["handle", "int32"], ["blockIdx.x"])
    return runtime.DeviceModule("cuda", data, "ptx", [info])


@pytest.mark.parametrize("embed", ["c", "llvm", "segment"])
@pytest.mark.parametrize("nbytes", [0, 1, PAGE - 1, PAGE, PAGE + 1, (1 << 20) + 5])
def test_payload_of_any_size_comes_back_in_a_fresh_process(embed, nbytes, tmp_path) -> None:
    """Every embedder puts the same bytes behind the same symbol, at the sizes around the edges."""
    data = os.urandom(nbytes)
    root = host()
    root.import_module(device(data))
    path = packer.export_library(root, tmp_path / "lib.so", embed=embed)
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


def test_c_llvm_and_static_modules_merge_anywhere_in_the_tree(tmp_path, compile_object) -> None:
    """Host code of three kinds, at three places, is one library below the root."""
    static = packer.StaticLibraryModule(
        compile_object("int neg(int x) { return -x; }"), {"neg": "int(int x)"}
    )
    root = device(b"root")
    middle = runtime.MetadataModule()
    root.import_module(host())
    root.import_module(middle)
    middle.import_module(packer.LLVMModule(MUL, functions={"mul": "int64_t(int64_t, int64_t)"}))
    middle.import_module(static)
    loaded = runtime.load(packer.export_library(root, tmp_path / "lib.so"))
    assert [m.type_key for m in loaded.imported_modules] == ["library", "metadata_module"]
    assert [m.type_key for m in loaded.imported_modules[1].imported_modules] == ["library"]
    assert (loaded["add"](1, 2), loaded["mul"](3, 4), loaded["neg"](5)) == (3, 12, -5)


def test_archive_is_linked_with_all_its_members(tmp_path, compile_object) -> None:
    """A function that nothing else refers to is there: members are not picked."""
    import subprocess

    members = [compile_object(f"int f{i}(void) {{ return {i}; }}") for i in range(2)]
    archive = tmp_path / "two.a"
    subprocess.run(["ar", "rcs", archive, *members], check=True)
    module = packer.StaticLibraryModule(archive, {"f1": "int(void)"})
    path = packer.export_library(module, tmp_path / "lib.so")
    import ctypes

    assert runtime.load(path)["f1"]() == 1
    assert ctypes.CDLL(str(path)).f0() == 0


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


def test_function_keeps_library_and_imports_alive(tmp_path) -> None:
    """A function outlives the module it came from; so does a view of a payload."""
    root = host()
    root.import_module(device(b"x" * 10_000))
    path = packer.export_library(root, tmp_path / "lib.so")
    add = runtime.load(path)["add"]
    view = runtime.load(path).imported_modules[0].data
    path.unlink()
    assert add(1, 1) == 2
    assert bytes(view) == b"x" * 10_000
    assert add.owner.imported_modules[0].type_key == "cuda"


def test_library_is_closed_when_nothing_is_left_of_it(tmp_path) -> None:
    """Without a cycle in between: no collector has to run."""
    path = packer.export_library(host(), tmp_path / "lib.so")
    module = runtime.load(path)
    add = module["add"]
    assert str(path) in Path("/proc/self/maps").read_text()
    del module
    assert str(path) in Path("/proc/self/maps").read_text()
    del add
    assert str(path) not in Path("/proc/self/maps").read_text()


def test_same_file_is_the_same_module_and_a_new_file_is_new_code(tmp_path) -> None:
    """A rename over a loaded library gives new code under the old path; the old one lives on."""
    path = packer.export_library(host(), tmp_path / "lib.so")
    old = runtime.load(path)
    assert runtime.load(path) is old
    assert runtime.load(tmp_path / "." / "lib.so") is old
    packer.export_library(
        packer.CSourceModule("long add(long a, long b) { return a - b; }", functions=ADD_DECLARED),
        path,
    )
    new = runtime.load(path)
    assert new is not old
    assert (old["add"](5, 3), new["add"](5, 3)) == (8, 2)


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


def test_compiling_without_packer_says_what_to_install(tmp_path) -> None:
    """The one arrow back: a runtime alone cannot export, and says so."""
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


def test_wrong_declaration_is_a_compile_error_that_names_the_function(tmp_path) -> None:
    """The user's compiler compares the declaration with the definition."""
    module = packer.CSourceModule(ADD, functions={"add": "double(double a, double b)"})
    with pytest.raises(packer.ToolchainError, match="conflicting types for .add.") as info:
        packer.export_library(module, tmp_path / "lib.so")
    assert info.value.returncode == 1
    assert not list(tmp_path.iterdir())


def test_wrong_declaration_of_ir_is_refused_with_both_types() -> None:
    """The IR type is compared at once."""
    with pytest.raises(
        packer.ExportError, match=r"has type i64 \(i64, i64\), expected double \(i64"
    ):
        packer.LLVMModule(MUL, functions={"mul": "double(int64_t a, int64_t b)"})


def test_declared_function_that_nobody_defines_is_found_out(tmp_path) -> None:
    """A static function, or none at all, would be an undefined symbol at load."""
    module = packer.CSourceModule("int other;", functions={"missing": "int(void)"})
    with pytest.raises(packer.ToolchainError, match="undefined reference to .missing'"):
        packer.export_library(module, tmp_path / "lib.so")


def test_function_declared_twice_is_refused_before_linking(tmp_path) -> None:
    """Row B11: two host modules cannot both have it."""
    root = host()
    root.import_module(host())
    with pytest.raises(packer.ExportError, match="add: declared by .* expected once"):
        packer.export_library(root, tmp_path / "lib.so", fcompile=_must_not_run)


def _must_not_run(output, files, options):
    raise AssertionError("the linker was reached")


def test_unknown_entry_is_refused_before_linking(tmp_path) -> None:
    """An entry must be declared."""
    with pytest.raises(packer.ExportError, match="entry 'nope' is not declared; declared: add"):
        packer.export_library(host(), tmp_path / "lib.so", entry="nope", fcompile=_must_not_run)


def test_main_is_the_entry_or_refused(tmp_path) -> None:
    """The symbol of `main` is the entry's."""
    module = packer.CSourceModule("int main(void) { return 3; }", functions={"main": "int(void)"})
    with pytest.raises(packer.ExportError, match="main: stands for the entry function"):
        packer.export_library(module, tmp_path / "lib.so")
    assert runtime.load(packer.export_library(module, tmp_path / "m.so", entry="main"))() == 3


def test_module_that_cannot_be_exported_is_named_before_any_work(tmp_path) -> None:
    """Neither host code nor serialisable: refused, nothing written."""

    class Odd(runtime.Module):
        type_key = "test.odd2"

    root = host()
    root.import_module(Odd())
    with pytest.raises(packer.ExportError, match=r"root\.imported_modules\[0\] \(<Odd"):
        packer.export_library(root, tmp_path / "lib.so", fcompile=_must_not_run)
    assert not list(tmp_path.iterdir())


def test_output_that_is_an_input_is_refused(tmp_path) -> None:
    """Row E8: the source is not replaced by the library."""
    source = tmp_path / "add.c"
    source.write_text(ADD)
    with pytest.raises(packer.ExportError, match=r"add\.c: is an input too"):
        packer.export_library(packer.CSourceModule(source), source)
    assert source.read_text() == ADD


def test_same_input_gives_the_same_bytes(tmp_path) -> None:
    """In another folder, with any embedder."""
    for embed in ("c", "llvm", "segment"):
        files = []
        for folder in ("one", "another folder"):
            (tmp_path / folder).mkdir(exist_ok=True)
            root = host()
            root.import_module(device())
            path = packer.export_library(root, tmp_path / folder / "lib.so", embed=embed)
            files.append(path.read_bytes())
        assert files[0] == files[1]


def test_unknown_type_is_carried_through_the_manifest_and_explains_itself(tmp_path) -> None:
    """Rows A10: known where it was made, carried where it is not, written again unchanged."""
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


def test_unknown_type_without_a_manifest_is_refused(tmp_path, pack_blob) -> None:
    """Nothing tells where its payload ends."""
    key = b"test.unknown"
    blob = (1).to_bytes(8, "little") + len(key).to_bytes(8, "little") + key
    with pytest.raises(runtime.LoaderNotFoundError, match="'test.unknown' has no loader") as info:
        runtime.load(pack_blob(blob))
    assert info.value.type_key == "test.unknown"
    assert "__tvm_dev_mblob at 0x8" in str(info.value)


def test_fpack_imports_replaces_the_embedder(tmp_path) -> None:
    """TVM's hook: a function that packs the imports, and returns what to link."""
    calls = []

    def fpack_imports(module, system_lib, c_symbol_prefix, workspace_dir):
        calls.append((system_lib, c_symbol_prefix))
        path = Path(workspace_dir) / "packed.c"
        path.write_text(packer.pack_imports_to_c(module))
        return path

    root = host()
    root.import_module(device())
    path = packer.export_library(root, tmp_path / "lib.so", fpack_imports=fpack_imports)
    assert calls == [(False, "")]
    assert runtime.load(path).imported_modules[0].type_key == "cuda"


def test_pack_imports_to_llvm_gives_the_same_library(tmp_path) -> None:
    """devc.o as TVM's pack_imports_to_llvm makes it."""

    def fpack_imports(module, system_lib, c_symbol_prefix, workspace_dir):
        path = Path(workspace_dir) / "packed.o"
        packer.pack_imports_to_llvm(module).save(path)
        return path

    root = host()
    root.import_module(device())
    path = packer.export_library(root, tmp_path / "lib.so", fpack_imports=fpack_imports)
    assert runtime.load(path).imported_modules[0].type_key == "cuda"


def test_prefix_without_system_lib_is_refused() -> None:
    """Formats, system library: a prefix serves static linking only."""
    for pack in (packer.pack_imports_to_c, packer.pack_imports_to_llvm):
        with pytest.raises(packer.ExportError, match="'p_' without system_lib"):
            pack(device(), c_symbol_prefix="p_")


def test_fcompile_gets_sources_and_objects_and_its_object_format(tmp_path) -> None:
    """A user's linker takes LLVM modules in the format that it asks for."""
    seen = []

    def fcompile(output, files, options=None):
        seen.extend(Path(f).suffix for f in files)
        packer.create_shared(output, files, options=options)

    fcompile.object_format = "s"
    root = host()
    root.import_module(packer.LLVMModule(MUL, functions={"mul": "int64_t(int64_t, int64_t)"}))
    path = packer.export_library(root, tmp_path / "lib.so", fcompile=fcompile, embed="c")
    assert seen == [".c", ".s", ".c", ".c"]  # host code, its IR, glue.c, devc.c
    assert runtime.load(path)["mul"](6, 7) == 42


def test_options_addons_and_workspace_dir_are_used(tmp_path, compile_object) -> None:
    """The linker gets them; the caller's lists stay as they were; the workspace is kept."""
    addon = compile_object("int helper(void) { return 7; }")
    source = "int helper(void); int f(void) { return helper(); }"
    module = packer.CSourceModule(source, functions={"f": "int(void)"})
    options, addons = ["-Wl,-soname,mine.so"], [addon]
    (tmp_path / "work").mkdir()
    path = packer.export_library(
        module,
        tmp_path / "lib.so",
        options=options,
        addons=addons,
        workspace_dir=tmp_path / "work",
    )
    assert runtime.load(path)["f"]() == 7
    assert (options, addons) == (["-Wl,-soname,mine.so"], [addon])
    assert b"mine.so" in path.read_bytes()
    (kept,) = (tmp_path / "work").iterdir()
    assert "glue.c" in {p.name for p in kept.iterdir()}


def test_cpp_source_is_compiled_as_cpp(tmp_path) -> None:
    """fmt="cc": C++ with extern "C" functions."""
    source = '#include <vector>\nextern "C" int f(int n) { return std::vector<int>(n, 1).size(); }'
    module = packer.CSourceModule(source, fmt="cc", functions={"f": "int(int n)"})
    assert runtime.load(packer.export_library(module, tmp_path / "lib.so"))["f"](5) == 5


def test_llvm_module_runs_before_it_is_exported() -> None:
    """is_runnable: exported to a temporary library and loaded, one mechanism."""
    import llvmlite.ir as ir

    module = ir.Module()
    i64 = ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(i64, [i64]), "twice")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.add(function.args[0], function.args[0]))
    twice = packer.LLVMModule(module, functions={"twice": "int64_t(int64_t x)"})
    assert twice.is_runnable
    assert twice["twice"](21) == 42
    with pytest.raises(runtime.FunctionNotFoundError, match="near names: 'twice'"):
        twice["twic"]


def test_bitcode_and_text_give_the_same_object(tmp_path) -> None:
    """IR comes as text, bitcode or llvmlite's own; LLVM emits for any of its targets."""
    text = packer.LLVMModule(MUL)
    text.save(tmp_path / "m.bc")
    bitcode = packer.LLVMModule((tmp_path / "m.bc").read_bytes())
    text.save(tmp_path / "a.o")
    bitcode.save(tmp_path / "b.o")
    assert (tmp_path / "a.o").read_bytes() == (tmp_path / "b.o").read_bytes()
    arm = packer.LLVMModule(MUL, target="aarch64-unknown-linux-gnu")
    arm.save(tmp_path / "arm.o")
    assert (tmp_path / "arm.o").read_bytes()[18:20] == (183).to_bytes(2, "little")
    assert ".globl" in arm.get_source("s")


@pytest.mark.parametrize(
    ("ir", "message"),
    [
        ("define nonsense", r"LLVM refuses the IR: (.|\n)*expected type"),
        (b"BC nonsense", "LLVM refuses the IR"),
    ],
)
def test_bad_ir_is_an_export_error(ir, message) -> None:
    """What LLVM says is in the message."""
    with pytest.raises(packer.ExportError, match=message):
        packer.LLVMModule(ir)


def test_unknown_target_is_named() -> None:
    """A triple that this LLVM does not know."""
    with pytest.raises(packer.ToolchainError, match="no target 'nosuch-unknown-linux'"):
        packer.LLVMModule(MUL, target="nosuch-unknown-linux").save("/dev/null", "o")


def test_const_loader_hands_constants_to_host_code_once(tmp_path) -> None:
    """On the first look-up of a listed symbol its __init_ function gets the arrays."""
    source = """
    static const float *weights; static int inits;
    void __init_dot(const float *w) { weights = w; inits++; }
    float dot(const float *x) { return x[0] * weights[0] + x[1] * weights[1] + 1000 * inits; }
    """
    functions = {"__init_dot": "void(const float *w)", "dot": "float(const float *x)"}
    import array

    constants = runtime.ConstLoaderModule({"w": array.array("f", [3, 4])}, {"dot": ["w"]})
    constants.import_module(packer.CSourceModule(source, functions=functions))
    loaded = runtime.load(packer.export_library(constants, tmp_path / "lib.so"))
    assert loaded.type_key == "const_loader"
    for _ in range(2):
        assert loaded["dot"](array.array("f", [1, 2])) == 1011
    assert list(loaded.get_function("get_const_var_ndarray")()) == ["w"]


def test_carried_source_is_compiled_when_it_is_exported_again(tmp_path) -> None:
    """A `c` module from a blob is host code for the next export; a load compiles nothing."""
    data = runtime.serialize_module_to_bytes(
        runtime.CarriedSourceModule("int carried(void) { return 5; }", "c", ["carried"]), False
    )
    carried = runtime.deserialize_module_from_bytes(data)
    assert not carried.is_runnable
    with pytest.raises(runtime.FunctionNotFoundError, match="carries it, but cannot run here"):
        carried["carried"]
    import ctypes

    path = packer.export_library(carried, tmp_path / "lib.so")
    assert ctypes.CDLL(str(path)).carried() == 5

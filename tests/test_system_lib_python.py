"""Static linking: models in a Python process, and refused registrations."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest

import packer
import runtime
from runtime.abi import CONTEXT_SYMBOLS

from .support import needs
from .support.compile import INCLUDE, compile_c
from .support.process import run_python
from .support.system_models import REGISTER, beside_python, model, tree


def test_two_models_of_one_library_beside_python(tmp_path) -> None:
    """Each prefix is a separate tree: functions, entry, imports; the same module each time."""
    objects = [model(tmp_path, number, entry="add") for number in (1, 2)]
    both = packer.link_library(objects, tmp_path / "both.so")
    expression = (
        "[m(40, 2), m['add'](40, 2), m.function_names(), m.imported_modules[0].type_key,"
        " str(m.imported_modules[0].data, 'ascii'), runtime.system_lib(sys.argv[2]) is m,"
        " m['add'].signature, m.property_mask]"
    )
    for number, result in ((1, 42), (2, 82)):
        assert beside_python(both, expression, f"net{number}_") == [
            *(result, result, ["add", "main"], "cuda", f"payload {number}", True),
            *("long add(long a, long b)", 2),
        ]


def test_library_of_a_model_is_exported_directly(tmp_path) -> None:
    """A .so registers as well; without a prefix it is the tree of the empty one."""
    library = packer.export_library(tree(3), tmp_path / "net.so", system_lib=True)
    assert beside_python(library, "m['add'](40, 2)", "") == 122


def test_look_up_tries_the_prefix_then_the_name(tmp_path) -> None:
    """A function of a model without a prefix serves models that lack it; data does not."""
    plain = packer.CSourceModule(
        "int add(void) { return 0; } int other(void) { return 7; }",
        functions={"add": "int(void)", "other": "int(void)"},
    )
    plain.import_module(runtime.DeviceModule("opencl", "", "cl", []))
    objects = [
        model(tmp_path, 1),
        packer.export_library(plain, tmp_path / "plain.o", system_lib=True),
    ]
    both = packer.link_library(objects, tmp_path / "both.so")
    expression = "[m['add'](40, 2), m['other'](), m.imported_modules[0].type_key]"
    assert beside_python(both, expression) == [42, 7, "cuda"]
    assert beside_python(both, "len(m.imported_modules)", "net2_") == 0


def test_packed_functions_register_by_their_names(tmp_path) -> None:
    """Functions of TVM's older interface; its objects register themselves, by the same call."""
    code = (
        "int f(long long *args, int *codes, int n, long long *ret, int *code, void *resource) {\n"
        "  (void)codes, (void)resource; *ret = args[0] + n; *code = 0; return 0;\n}\n"
    )
    root = packer.CSourceModule(code, functions=["f"])
    library = packer.link_library([model(tmp_path, 1, root=root)], tmp_path / "net1.so")
    assert beside_python(library, "m['f'](40, 2)") == 42
    other = f"{code}{REGISTER}__attribute__((constructor)) static void add(void) {{\n"
    compile_c(
        f'{other}TVMBackendRegisterSystemLibSymbol("net1_f", (void *)f); }}', tmp_path / "tvm.so"
    )
    assert beside_python(tmp_path / "tvm.so", "m['f'](40, 2)") == 42


def test_host_code_calls_the_imports_of_its_model(tmp_path) -> None:
    """Context symbols are filled: each model finds its own imports, then global functions."""
    code = (
        '#include "dso_packer.h"\n'
        "int64_t run(int64_t n) {\n"
        "  dso_any result;\n"
        '  return dso_call("tests.twice", &result, dso_int(n)) ? -1 : result.v_int64;\n}\n'
    )
    objects = []
    for number in (1, 2):
        root = packer.CSourceModule(code, functions={"run": "int64_t(int64_t n)"})
        objects.append(model(tmp_path, number, root=root))
    both = packer.link_library(objects, tmp_path / "both.so")
    expression = "[runtime.register_func('tests.twice')(lambda n: 2 * n) and 0, m['run'](21)]"
    assert beside_python(both, expression) == [0, 42]


def test_each_context_symbol_of_a_model_is_filled(tmp_path) -> None:
    """Host code with a prefix gets every function that the core provides (docs/format.md)."""
    names = [name for name in CONTEXT_SYMBOLS if name != "__TVMFFIErrorSetRaisedFromCStr"]
    variables = "".join(f"void *{name} = 0;\n" for name in names)
    filled = " + ".join(f"({name} != 0)" for name in names)
    root = packer.CSourceModule(
        f"{variables}int count(void) {{ return {filled}; }}", functions={"count": "int()"}
    )
    library = packer.link_library([model(tmp_path, 1, root=root)], tmp_path / "model.so")
    assert beside_python(library, "m['count']()") == len(names)


def test_second_copy_is_refused(tmp_path) -> None:
    """The registered library stays; a file with the same names is not loaded."""
    first = packer.link_library([model(tmp_path, 1)], tmp_path / "one.so")
    (tmp_path / "two.so").write_bytes(first.read_bytes())
    code = (
        "import json, runtime, sys\n"
        "one = runtime.load(sys.argv[1])\n"
        "try:\n    runtime.load(sys.argv[2])\nexcept runtime.LibraryLoadError as e:\n"
        "    text = str(e)\n"
        "del one\n"
        "print(json.dumps([text, runtime.system_lib('net1_')['add'](40, 2)]))"
    )
    text, result = run_python(code, str(first), str(tmp_path / "two.so"))
    assert "two.so: registers symbol 'net1_" in text or "two.so: registers symbol '__" in text
    assert f"registered by {first}; give each model a different prefix" in text
    assert result == 42


LOADS_NEXT = f"""{REGISTER}
int PyGILState_Ensure(void);
void PyGILState_Release(int);
int PyRun_SimpleString(const char *);
int mine;
__attribute__((constructor)) static void load(void) {{
  TVMBackendRegisterSystemLibSymbol(NAME, &mine);
  int state = PyGILState_Ensure();
  PyRun_SimpleString("load_next()");
  PyGILState_Release(state);
}}
"""


@pytest.mark.parametrize("refused", ["outer", "inner"])
def test_refusal_is_that_of_the_library_that_registered(refused, tmp_path) -> None:
    """A constructor may load another library: neither load hides the other's refusal, or has it."""
    names = {"first": "known", "outer": "own", "inner": "another", refused: "known"}
    for file, name in names.items():
        compile_c(LOADS_NEXT, tmp_path / f"{file}.so", f'-DNAME="{name}"')
    code = (
        "import json, runtime, sys\n"
        "files, said = ['inner', 'outer', 'first'], {}\n"
        "def load_next():\n"
        "    if not files:\n        return\n"
        "    file = files.pop()\n"
        "    try:\n        said[file] = str(runtime.load(f'{sys.argv[1]}/{file}.so') and '')\n"
        "    except runtime.LibraryLoadError as e:\n        said[file] = str(e)\n"
        "load_next()\n"
        "print(json.dumps(said))"
    )
    said = run_python(code, str(tmp_path))
    assert f"{refused}.so: registers symbol 'known', already registered by" in said.pop(refused)
    assert list(said.values()) == ["", ""]


def test_error_without_registration_says_how_to_register(tmp_path) -> None:
    """The module is there; a look-up names the remedy, and a later load helps."""
    library = packer.link_library([model(tmp_path, 1)], tmp_path / "net1.so")
    code = (
        "import json, runtime, sys\n"
        "m = runtime.system_lib('net1_')\n"
        "try:\n    m['add']\nexcept runtime.FunctionNotFoundError as e:\n    text = str(e)\n"
        "runtime.load(sys.argv[1])\n"
        "print(json.dumps([text, runtime.system_lib('net1_')['add'](40, 2)]))"
    )
    text, result = run_python(code, str(library))
    assert text.startswith("system library 'net1_': no function 'add': nothing is registered under")
    assert result == 42


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ("const unsigned long long bad[2] = {1ull << 62};", "is longer than its segment"),
        ("const unsigned long long bad[2] = {~0ull};", "is longer than its segment"),
        ("const unsigned long long bad[4] = {8, 1};", "bad"),
    ],
    ids=["huge", "wraps", "malformed"],
)
def test_inconsistent_registered_blob_is_refused(data, match, tmp_path) -> None:
    """The size of a registered blob is only the one in its header."""
    source = (
        f"{REGISTER}{data}\n__attribute__((constructor)) static void add(void) {{\n"
        '  TVMBackendRegisterSystemLibSymbol("bad_" "__tvm_dev_mblob", (void *)bad);\n}\n'
    )
    library = compile_c(source, tmp_path / "bad.so")
    code = (
        "import json, runtime, sys\n"
        "runtime.load(sys.argv[1])\n"
        "try:\n    runtime.system_lib('bad_')\nexcept runtime.PackerError as e:\n"
        "    print(json.dumps(str(e)))"
    )
    assert match in run_python(code, str(library))


def test_program_that_embeds_python_shows_its_models(tmp_path) -> None:
    """Linked with -rdynamic, a program's own symbols are a system library of its Python."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / "main.c").write_text(
        "#include <Python.h>\n#define DSO_SYSTEM_LIB_IMPLEMENTATION\n"
        '#include "dso_packer_system_lib.h"\n'
        "int main(int argc, char **argv) {\n  (void)argc; Py_Initialize();\n"
        "  return PyRun_SimpleString(argv[1]) != 0 || Py_FinalizeEx() != 0;\n}\n"
    )
    library = f"-L{sysconfig.get_config_var('LIBDIR')}"
    include = f"-I{sysconfig.get_path('include')}"
    models = [model(tmp_path, number) for number in (1, 2)]
    command = ["cc", "-rdynamic", f"-I{INCLUDE}", include, "main.c", *models, library]
    done = subprocess.run(
        [*command, f"-lpython{version}", "-lm", "-ldl", "-lutil", "-lpthread", "-o", "main"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        needs.system("a libpython to link with", done.stderr[-200:])
    code = (
        f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}\n"
        "import runtime\n"
        "for prefix in ('net1_', 'net2_'):\n"
        "    m = runtime.system_lib(prefix)\n"
        "    print(m['add'](40, 2), str(m.imported_modules[0].data, 'ascii'))\n"
    )
    environment = {"LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [tmp_path / "main", code], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["42 payload 1", "82 payload 2"]

"""Static linking: models that register at start-up, in C programs and beside Python."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import packer
import runtime
from runtime.abi import CONTEXT_SYMBOLS

from .compile import INCLUDE, compile_c
from .process import run_python

REGISTER = "extern int TVMBackendRegisterSystemLibSymbol(const char *, void *);\n"
MAIN = """
#define DSO_SYSTEM_LIB_IMPLEMENTATION
#include "dso_packer_system_lib.h"

static void call(const char *prefix, dso_any first) {
  dso_any result = dso_none(), args[2];
  args[0] = first, args[1] = dso_int(2);
  if (dso_system_lib_call(prefix, "add", &result, args, 2))
    printf("%s\\n", dso_system_lib_error());
  else
    printf("%lld\\n", (long long)result.v_int64);
}

int main(void) {
  call("net1_", dso_int(40));
  call("net2_", dso_int(40));
  call("net3_", dso_int(40));
  call("net1_", dso_string("x"));
  return 0;
}
"""
PRINTED = [
    "42",
    "82",
    "FunctionNotFoundError: no function 'net3_add' and no 'add' is linked into this program (of an "
    "archive, link all: -Wl,--whole-archive)",
    "TypeError: add: argument 1 'a' (long): expected an int, found str; declared as "
    "long add(long a, long b)",
]


def tree(factor: int, payload: bytes = b"") -> packer.CSourceModule:
    """A model; all of them define the same names, and mean different things by them."""
    root = packer.CSourceModule(
        f"long scale(long a) {{ return {factor} * a; }}\nlong counter = {factor};\n"
        "long add(long a, long b) { return scale(a) + b; }",
        functions={"add": "long(long a, long b)"},
    )
    data = payload or b"payload %d" % factor
    root.import_module(runtime.DeviceModule("cuda", data, "ptx", []))
    return root


def model(folder: Path, number: int, suffix: str = "o", **options) -> Path:
    """A model with a prefix of its own."""
    return packer.export_library(
        options.pop("root", None) or tree(number),
        folder / f"net{number}.{suffix}",
        system_lib=True,
        c_symbol_prefix=f"net{number}_",
        **options,
    )


def linked(folder: Path, *options: str | Path, compiler: str = "cc -std=c99") -> list[str]:
    """What the C program prints that was linked with these."""
    (folder / "main.c").write_text(MAIN)
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
    command = [*compiler.split(), *warnings, f"-I{INCLUDE}", "-c", "main.c"]
    subprocess.run(command, cwd=folder, check=True)
    subprocess.run(["cc", "main.o", *options, "-o", "main"], cwd=folder, check=True)
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


# ---- in a C program


@pytest.mark.parametrize("embed", ["c", "llvm"])
@pytest.mark.parametrize("compiler", ["cc -std=c99", "g++ -xc++ -std=c++11"])
def test_two_models_in_one_c_program(embed, compiler, tmp_path) -> None:
    """Both are called; neither sees the other's functions, variables or blob."""
    models = [model(tmp_path, number, embed=embed) for number in (1, 2)]
    assert linked(tmp_path, *models, compiler=compiler) == PRINTED


def test_archives_are_linked_as_a_whole(tmp_path) -> None:
    """A linker picks what is asked for; nobody asks for what registers itself."""
    models = [model(tmp_path, number, "a") for number in (1, 2)]
    whole = ["-Wl,--whole-archive", *models, "-Wl,--no-whole-archive"]
    assert linked(tmp_path, *whole) == PRINTED


def test_models_share_no_global_symbol(tmp_path) -> None:
    """Not even what both define by the same name, entry and context symbols among it."""

    def defined(path: Path) -> set[str]:
        lines = subprocess.check_output(["nm", "-g", "--defined-only", path], text=True)
        return {line.split()[-1] for line in lines.splitlines()}

    first, second = (defined(model(tmp_path, number, entry="add")) for number in (1, 2))
    assert not first & second
    assert {
        *("net1_add", "net1_scale", "net1_counter", "__tvm_ffi_net1_add", "__packer_fn_net1_add"),
        *("net1___tvm_main__", "__tvm_ffi_net1_main", "net1___tvm_dev_mblob"),
        *("net1___packer_manifest", "net1___packer_checksums"),
        "net1___TVMFFIErrorSetRaisedFromCStr",
    } == first


@pytest.mark.parametrize("suffix", ["o", "a", "tar", "so"])
def test_models_of_the_other_dialect(suffix, tmp_path) -> None:
    """Metadata has the name that tvm_ffi looks for: the prefix, then all of what it is without."""
    paths = [model(tmp_path, number, suffix, format="tvm-ffi") for number in (1, 2)]
    library = packer.link_library(paths, tmp_path / "both.so") if suffix != "so" else paths[0]
    defined = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True).split()
    assert {"net1___tvm_ffi__metadata_add", "net1___tvm_ffi__library_bin"} <= set(defined)
    assert beside_python(library, "[m['add'](40, 2), m.function_names()]") == [42, ["add"]]


def test_cpp_models_keep_what_templates_made(tmp_path) -> None:
    """What C++ defines in every object is each model's own; exceptions work."""
    code = """
    #include <stdexcept>
    #include <vector>
    template <typename T> struct Scale {{ static T by() {{ return {0}; }} }};
    inline long seen() {{ static long count = {0}; return count; }}
    extern "C" long add(long a, long b) {{
      std::vector<long> values(3, Scale<long>::by());
      try {{ if (b == 2) throw std::runtime_error("two"); }}
      catch (const std::exception &) {{ return a * values.at(1) + seen() + b; }}
      return 0;
    }}
    """
    models = []
    for number in (1, 2):
        declared = {"add": "long(long a, long b)"}
        root = packer.CSourceModule(code.format(number), fmt="cc", functions=declared)
        models.append(model(tmp_path, number, root=root))
    assert linked(tmp_path, *models, "-lstdc++")[:2] == ["43", "84"]


def test_same_prefix_twice_is_refused_by_the_linker(tmp_path) -> None:
    """The symbols themselves clash; the linker names one."""
    first = model(tmp_path, 1)
    (tmp_path / "other").mkdir()
    second = model(tmp_path / "other", 1)
    (tmp_path / "main.c").write_text(MAIN)
    command = ["cc", f"-I{INCLUDE}", "main.c", first, second]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "multiple definition of `" in done.stderr


def test_registered_twice_is_told_and_the_first_stays(tmp_path) -> None:
    """A name with another address is refused in words; with the same one it is nothing."""
    (tmp_path / "again.c").write_text(
        f"{REGISTER}static int mine;\n"
        "__attribute__((constructor(65535))) static void again(void) {\n"
        '  extern char net1_add; TVMBackendRegisterSystemLibSymbol("other", &net1_add);\n'
        '  TVMBackendRegisterSystemLibSymbol("other", &net1_add);\n'
        '  TVMBackendRegisterSystemLibSymbol("other", &mine);\n}\n'
    )
    (tmp_path / "main.c").write_text(MAIN)
    command = ["cc", f"-I{INCLUDE}", "main.c", "again.c", model(tmp_path, 1), model(tmp_path, 2)]
    subprocess.run([*command, "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == PRINTED
    assert done.stderr == (
        "dso-packer: 'other' is registered twice, expected once: give each model a prefix of its "
        "own (packer export --c-symbol-prefix)\n"
    )


@pytest.fixture(params=["aarch64", "riscv64"])
def machine(request) -> str:
    """Another machine, for which there are a compiler and an emulator."""
    for program in (f"{request.param}-linux-gnu-gcc", f"qemu-{request.param}"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    return request.param


def printed_on(machine: str, source: str, folder: Path, *models: Path) -> bytes:
    """What a C program prints that is linked with models by another machine's compiler."""
    (folder / "main.c").write_text(source)
    compiler = [f"{machine}-linux-gnu-gcc", "-static", f"-I{INCLUDE}"]
    subprocess.run([*compiler, "main.c", *models, "-o", "main"], cwd=folder, check=True)
    return subprocess.check_output([f"qemu-{machine}", "main"], cwd=folder)


def test_program_for_another_machine(machine, tmp_path) -> None:
    """Objects for another target, linked by its compiler and run by an emulator."""
    target = f"{machine}-linux-gnu"
    models = [model(tmp_path, n, target=target, embed=e) for n, e in ((1, "llvm"), (2, "c"))]
    assert printed_on(machine, MAIN, tmp_path, *models).decode().splitlines() == PRINTED


BLOB = """
#define DSO_SYSTEM_LIB_IMPLEMENTATION
#include "dso_packer_system_lib.h"

int main(void) {
  for (const dso_system_symbol *s = dso_system_lib_symbols(); s; s = s->next)
    if (!strcmp(s->name, "net1___tvm_dev_mblob"))
      fwrite(s->address, 1, 8 + *(const uint64_t *)s->address, stdout);
  return 0;
}
"""


@pytest.mark.parametrize("suffix", ["o", "a"])
def test_large_payload_registers_on_another_machine(machine, suffix, tmp_path) -> None:
    """Beyond 1 MiB the target's own assembler takes the bytes: LLVM has none for it."""
    payload = bytes(range(256)) * 5000
    root, target = tree(1, payload), f"{machine}-linux-gnu"
    made = model(tmp_path, 1, suffix, root=root, target=target, embed="llvm")
    # An archive is named by its object, so that a linker takes it without being told to.
    blob = printed_on(machine, BLOB, tmp_path, made, "-Wl,-u,net1___tvm_dev_mblob")
    assert payload in blob
    assert len(blob) == 8 + int.from_bytes(blob[:8], "little")


def test_program_of_the_documentation(tmp_path) -> None:
    """docs/outputs.md: its C program and its Python."""
    text = (Path(__file__).parents[1] / "docs" / "outputs.md").read_text()
    (program,) = re.findall(r"```c\n(.*?)```", text, re.DOTALL)
    (python,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    models = [model(tmp_path, number) for number in (1, 2)]
    (tmp_path / "main.c").write_text(program)
    command = ["cc", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "main.c", *models, "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.check_output([tmp_path / "main"], text=True) == "42\n"
    code = f"import os, packer, runtime; os.chdir({str(tmp_path)!r})\n{python}print(1)"
    assert run_python(code) == 1


# ---- what goes into the objects


@pytest.mark.parametrize("embed", ["c", "llvm"])
@pytest.mark.parametrize("suffix", ["o", "a", "tar", "so"])
def test_same_model_is_the_same_bytes(embed, suffix, tmp_path) -> None:
    """Row E18: in another folder, at another time."""
    made = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        made.append(model(tmp_path / name, 1, suffix, embed=embed).read_bytes())
    assert made[0] == made[1]


def test_embedded_text_is_that_of_tvm(tmp_path) -> None:
    """The C way is the text that pack_imports_to_c writes, which golden files fix."""
    model(tmp_path, 1, embed="c", workspace_dir=tmp_path)
    (text,) = tmp_path.glob("packer-*/devc.cc")
    expected = packer.pack_imports_to_c(tree(1), True, "net1_")
    assert text.read_text().startswith(expected)


def test_packer_of_the_users_own_registers_the_blob(tmp_path) -> None:
    """fpack_imports gets system_lib and the prefix, as TVM passes them."""
    given = []

    def pack(module, system_lib, prefix, folder):
        given.append((system_lib, prefix))
        path = Path(folder) / "own.cc"
        path.write_text(packer.pack_imports_to_c(module, system_lib, prefix))
        return path

    library = packer.link_library([model(tmp_path, 1, fpack_imports=pack)], tmp_path / "net1.so")
    assert given == [(True, "net1_")]
    assert beside_python(library, "[m['add'](40, 2), m.imported_modules[0].fmt]") == [42, "ptx"]


def test_linker_that_compiles_nothing_by_itself_makes_a_model(tmp_path) -> None:
    """Any fcompile will do: sources find our headers, and get their modules' options."""

    def link(output, files, options=()):
        subprocess.run(["cc", "-shared", "-o", output, *files, *options], check=True)

    declared = {"add": "long(long a, long b)"}
    code = "long add(long a, long b) { return BY * a + b; }"
    root = packer.CSourceModule(code, functions=declared, options=["-DBY=1"])
    library = model(tmp_path, 1, "so", root=root, fcompile=link)
    assert beside_python(library, "m['add'](40, 2)") == 42


def test_large_payload_registers_too(tmp_path) -> None:
    """Beyond 1 MiB the bytes come from the assembler."""
    root = tree(1, payload=bytes(range(256)) * 5000)
    library = packer.link_library([model(tmp_path, 1, root=root)], tmp_path / "net1.so")
    assert beside_python(library, "len(m.imported_modules[0].data)") == 256 * 5000


@pytest.mark.parametrize(
    ("options", "first"), [({}, "embed='segment' for a library, or "), ({"system_lib": True}, "")]
)
def test_array_that_no_compiler_takes_says_what_is_possible(options, first, tmp_path) -> None:
    """Bytes that are placed behind a linked library register nothing; LLVM's always can."""
    root = tree(1, payload=bytes((16 << 20) + 1))
    text = re.escape(f"give up on larger arrays; use {first}embed='llvm'")
    with pytest.raises(packer.ExportError, match=f"^embed 'c': 1677.*{text}$"):
        packer.export_library(root, tmp_path / "net1.o", embed="c", **options)


@pytest.mark.parametrize("suffix", ["so", "o"])
def test_prefix_alone_is_refused(suffix, tmp_path) -> None:
    """It would do nothing for what is loaded."""
    path = tmp_path / f"net.{suffix}"
    for refused in (
        lambda: packer.export_library(tree(1), path, c_symbol_prefix="net1_"),
        lambda: packer.pack_imports_to_c(tree(1), False, "net1_"),
        lambda: packer.pack_imports_to_llvm(tree(1), False, None, "net1_"),
    ):
        with pytest.raises(packer.ExportError, match="prefix 'net1_' without system_lib"):
            refused()


@pytest.mark.parametrize("prefix", ["1net", "net-", "net 1", "né", "a\0b", '"'])
def test_prefix_that_is_no_name_is_refused(prefix, tmp_path) -> None:
    """It stands before names in C."""
    with pytest.raises(packer.ExportError, match="expected the beginning of a C name"):
        packer.export_library(tree(1), tmp_path / "m.o", system_lib=True, c_symbol_prefix=prefix)


def test_code_for_link_time_optimisation_is_renamed_too(tmp_path) -> None:
    """The merge generates it; gcc alone does that for objects of two kinds."""
    models = []
    for number in (1, 2):
        code = f"long k(void) {{ return {number}; }}"
        code += " long add(long a, long b) { return k() * a + b; }"
        declared = {"add": "long(long a, long b)"}
        root = packer.CSourceModule(code, functions=declared, options=["-flto"])
        models.append(model(tmp_path, number, root=root))
    assert linked(tmp_path, *models) == PRINTED


def test_placed_bytes_register_nothing(tmp_path) -> None:
    """A library that registers itself takes its blob through the linker."""
    with pytest.raises(packer.ExportError, match="'segment' works on a linked library"):
        packer.export_library(tree(1), tmp_path / "m.so", system_lib=True, embed="segment")


# ---- beside Python


def beside_python(library: Path, expression: str, prefix: str = "net1_"):
    """What an expression of the module ``m`` is, in a fresh process that loaded the library."""
    code = (
        "import json, runtime, sys\n"
        "runtime.load(sys.argv[1]); m = runtime.system_lib(sys.argv[2])\n"
        f"print(json.dumps({expression}))"
    )
    return run_python(code, str(library), prefix)


def test_two_models_of_one_library_beside_python(tmp_path) -> None:
    """Each prefix is a tree of its own: functions, entry, imports; the same module each time."""
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
    """A function of a model without a prefix serves those that lack it; data does not."""
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


def test_host_code_calls_what_its_model_imports(tmp_path) -> None:
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


def test_second_copy_is_refused_in_words(tmp_path) -> None:
    """What is registered stays; the file that would take its place is not loaded."""
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
    assert "two.so: registers 'net1_" in text or "two.so: registers '__" in text
    assert f"registered by {first}, expected once: give each model a prefix of its own" in text
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
    assert f"{refused}.so: registers 'known', which is registered by" in said.pop(refused)
    assert list(said.values()) == ["", ""]


def test_nothing_registered_says_what_to_do(tmp_path) -> None:
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
def test_registered_blob_that_lies_is_refused(data, match, tmp_path) -> None:
    """Rows A4 and A7: what was registered has no size but what it says."""
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
        pytest.skip(f"there is no libpython to link with: {done.stderr[-200:]}")
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

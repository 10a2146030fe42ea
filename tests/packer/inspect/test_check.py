"""packer check: each line against a library for which it passes, and one for which it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import packer
import runtime
from packer.elf.library_search import find_system_library
from packer.inspect.check import check_library
from packer.inspect.findings import Finding, has_failed
from runtime.error import LibraryLoadError
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support import models, needs
from ...support.cuda_libraries import PTX, cubin
from ...support.elf_poke import Elf
from ...support.paths import FOUND
from ...support.vm_assembler import Code, Program, call, imm, packed, reg, ret


def by_name(path: Path, **options) -> Mapping[str, Finding]:
    """The findings."""
    return {finding.name: finding for finding in check_library(path, **options)}


def loads(path: Path) -> bool:
    """Return True if a fresh process can load it."""
    code = "import runtime, sys; runtime.load(sys.argv[1])"
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    return run.returncode == 0


@pytest.fixture
def chain(tmp_path, compile_library):
    """``chain(option)``: a library that needs libdeep.so of a folder, linked with the option."""
    folder = tmp_path / "deep"
    folder.mkdir()
    deep = folder / "libdeep.so"
    deep.write_bytes(
        compile_library("int deep(void) { return 1; }", "-Wl,-soname,libdeep.so").read_bytes()
    )

    def make(*options: str) -> Path:
        made = compile_library(
            "int deep(void); int f(void) { return deep(); }", *options, str(deep)
        )
        path = tmp_path / "model.so"
        path.write_bytes(made.read_bytes())
        return path

    return make


def test_good_library_passes(compile_library) -> None:
    """Every line, and it loads."""
    path = compile_library('#include <stdio.h>\nint f(void) { return puts("x"); }')
    findings = by_name(path)
    assert {finding.status for finding in findings.values()} == {"pass"}
    assert findings["needed libc.so.6"].detail.endswith("/libc.so.6")
    assert "undefined symbols" in findings
    assert loads(path)


def test_constructor_leaves_no_mark(compile_library, tmp_path, monkeypatch) -> None:
    """A check runs nothing of the library."""
    mark = tmp_path / "mark"
    monkeypatch.setenv("CHECK_MARK", str(mark))
    path = compile_library(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void leave_mark(void) {\n"
        '  FILE *file = fopen(getenv("CHECK_MARK"), "w"); if (file) fclose(file); }'
    )
    check_library(path)
    assert not mark.exists()
    assert loads(path)
    assert mark.exists()


def test_other_machine_is_named(compile_library, tmp_path) -> None:
    """No other property is compared."""
    elf = Elf(compile_library("int f;").read_bytes())
    elf.poke(elf.header, "e_machine", 183)
    (tmp_path / "foreign.so").write_bytes(elf.data)
    (finding,) = check_library(tmp_path / "foreign.so")
    assert (finding.name, finding.status) == ("machine", "fail")
    assert finding.detail.startswith("compiled for aarch64, this is ")


def test_newer_glibc_is_named(compile_library, tmp_path) -> None:
    """The version that is needed, and that of this system."""
    good = compile_library('#include <stdio.h>\nint f(void) { return puts("x"); }')
    (version,) = {v for n in packer.inspect_library(good).linkage.version_needs for v in n.versions}
    newer = b"GLIBC_9.".ljust(len(version), b"9")
    path = tmp_path / "newer.so"
    path.write_bytes(good.read_bytes().replace(version.encode() + b"\0", newer + b"\0"))
    finding = by_name(path)["glibc"]
    assert finding.status == "fail"
    assert finding.detail.startswith(f"needs {newer.decode().removeprefix('GLIBC_')}, this is 2.")
    assert "or newer" in finding.remedy
    assert not loads(path)


def test_glibc_that_a_needed_library_needs_is_named_with_it(chain, tmp_path) -> None:
    """The library itself needs an older one; its own version comes first."""
    path = chain("-Wl,-rpath,$ORIGIN/deep")
    deep = tmp_path / "deep/libdeep.so"
    source = '#include <stdio.h>\nint deep(void) { return puts("x"); }'
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", deep, "-Wl,-soname,libdeep.so"]
    subprocess.run(command, input=source, text=True, check=True)
    own = packer.inspect_library(path).linkage.glibc
    (needs_,) = packer.inspect_library(deep).linkage.version_needs
    newer = b"GLIBC_9.".ljust(len(needs_.versions[0]), b"9")
    deep.write_bytes(deep.read_bytes().replace(needs_.versions[0].encode() + b"\0", newer + b"\0"))
    finding = by_name(path)["glibc"]
    version = newer.decode().removeprefix("GLIBC_")
    by = "libdeep.so, which it loads,"
    assert finding.status == "fail"
    assert finding.detail.startswith(
        f"needs {own} ({by} {version})" if own else f"{by} needs {version}, this is 2."
    )
    assert "install libdeep.so for glibc 2." in finding.remedy


def test_a_library_for_musl_is_called_so(tmp_path, monkeypatch) -> None:
    """Its libc.so is not a library that a package for glibc provides."""
    needs.program("musl-gcc")
    monkeypatch.setenv("CC", "musl-gcc")
    source = "#include <stdlib.h>\nint f(int x) { return abs(x); }"
    path = packer.export_library(
        packer.CSourceModule(source, functions="auto"), tmp_path / "model.so"
    )
    findings = by_name(path)
    assert list(findings) == ["machine", "contents", "musl"]
    assert findings["musl"].status == "fail" and not loads(path)
    assert findings["musl"].detail.startswith(
        "made for musl: needs libc.so, this Python uses glibc"
    )
    assert "a compiler for glibc, such as gcc" in findings["musl"].remedy
    assert packer.inspect_library(path).target.endswith("-linux-musl")


def test_missing_library_is_named_with_who_needs_it(chain) -> None:
    """No entry finds libdeep.so, and its symbols are missing too."""
    path = chain()
    findings = by_name(path)
    assert findings["needed libdeep.so"].status == "fail"
    assert findings["needed libdeep.so"].detail == "not found; model.so needs it"
    assert (findings["undefined symbols"].status, loads(path)) == ("warn", False)


@pytest.mark.parametrize(
    "options",
    [
        ("-Wl,-rpath,$ORIGIN/deep",),
        ("-Wl,-rpath,$ORIGIN/deep", "-Wl,--disable-new-dtags"),
        ("-Wl,-rpath,${ORIGIN}/none:$ORIGIN/deep",),
    ],
)
def test_library_is_found_through_its_runpath(options, chain, tmp_path) -> None:
    """As the dynamic loader finds it."""
    path = chain(*options)
    assert by_name(path)["needed libdeep.so"].detail == str(tmp_path / "deep/libdeep.so")
    assert loads(path)


def test_library_is_found_through_the_environment(chain, tmp_path, monkeypatch) -> None:
    """LD_LIBRARY_PATH, folders that are not there passed over."""
    path = chain()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/none:{tmp_path}/deep")
    assert by_name(path)["needed libdeep.so"].detail == str(tmp_path / "deep/libdeep.so")
    assert loads(path)


@pytest.mark.parametrize("kind", ["folder", "text"])
def test_file_that_is_not_a_library_ends_the_search(kind, chain, tmp_path, monkeypatch) -> None:
    """It ends the search of the dynamic loader too, even if the right library follows."""
    path, other = chain(), tmp_path / "other/libdeep.so"
    other.parent.mkdir()
    other.mkdir() if kind == "folder" else other.write_text("text, no library at all")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{other.parent}:{tmp_path}/deep")
    assert by_name(path)["needed libdeep.so"].status == "fail"
    assert not loads(path)


def test_library_for_another_machine_is_skipped(chain, tmp_path) -> None:
    """As the dynamic loader does."""
    path = chain("-Wl,-rpath,$ORIGIN/deep")
    elf = Elf((tmp_path / "deep/libdeep.so").read_bytes())
    elf.poke(elf.header, "e_machine", 183)
    (tmp_path / "deep/libdeep.so").write_bytes(elf.data)
    assert by_name(path)["needed libdeep.so"].status == "fail"
    assert not loads(path)


def test_undefined_symbol_is_named(compile_library) -> None:
    """No library that it needs defines it; a weak one may stay undefined."""
    path = compile_library(
        "int nowhere(void); __attribute__((weak)) int perhaps(void);\n"
        "int f(void) { return perhaps ? perhaps() : nowhere(); }"
    )
    finding = by_name(path)["undefined symbols"]
    assert (finding.status, finding.detail) == ("fail", "no needed library defines nowhere")
    assert not loads(path)


def test_symbols_that_a_load_binds_to_the_runtime_are_known(compile_library) -> None:
    """A load binds the symbols that TVM's libraries leave undefined, but no others of TVM."""
    source = "int {0}(const char *, void *); int f(void) {{ return {0}(0, 0); }}"
    path = compile_library(source.format("TVMBackendRegisterSystemLibSymbol"))
    findings = by_name(path)
    assert findings["symbols of TVM"].detail.startswith("TVMBackendRegisterSystemLibSymbol: bound")
    assert findings["undefined symbols"].status == "pass"
    assert loads(path)
    path = compile_library(source.format("TVMFFIObjectCreateOpaque"))
    finding = by_name(path)["undefined symbols"]
    assert (finding.status, finding.remedy[:23]) == ("fail", "load it with TVM itself")
    assert not loads(path)


def test_symbols_of_the_running_python_are_a_warning(compile_library) -> None:
    """They are there when this Python loads the library, and not in a C program."""
    path = compile_library(
        "void *PyLong_FromLong(long); void *f(void) { return PyLong_FromLong(1); }"
    )
    findings = by_name(path)
    finding = findings["symbols of this Python"]
    assert (finding.status, finding.detail.split(":")[0]) == ("warn", "PyLong_FromLong")
    assert findings["undefined symbols"].detail == "none"
    assert loads(path)


def test_bytecode_of_another_version_is_not_damaged(tmp_path) -> None:
    """The advice is to compile it again, not to copy it."""
    code = [call(1, 1, reg(0), imm(0)), ret(1)]
    functions = [Code("main", ["x"], code, 2), packed("vm.builtin.copy")]
    good = Program([Code("main", ["x"], [ret(0)], 1)])
    payload = Program(functions).payload()
    path = tmp_path / "model.so"
    module = runtime.OpaqueModule("relax.VMExecutable", memoryview(payload))
    packer.export_library(module, path)
    finding = by_name(path)["contents"]
    assert finding.detail.endswith("number of arguments of 'vm.builtin.copy', expected 1, found 2")
    assert finding.remedy.startswith("compile the model with TVM 0.16 to 0.27")
    packer.export_library(load(Reader(good.payload())), path)
    assert by_name(path)["contents"].status == "pass"


def test_damaged_blob_fails_and_unknown_types_warn(compile_library, tmp_path) -> None:
    """A damaged blob keeps a library from loading; an unknown type keeps only a part from use."""
    blob = 'const unsigned char __attribute__((visibility("default"))) __tvm_dev_mblob[9] = {1};'
    finding = by_name(compile_library(blob))["contents"]
    assert (finding.status, finding.remedy) == ("fail", "export it again, or copy it again")
    root = packer.CSourceModule("int f;")
    root.import_module(runtime.OpaqueModule("strange", memoryview(b"123")))
    root.import_module(runtime.MetadataModule())
    findings = check_library(packer.export_library(root, tmp_path / "strange.so"))
    statuses = {f.name: f.status for f in findings if f.name.startswith("loader")}
    assert statuses == {"loader of strange": "warn", "loader of metadata_module": "pass"}
    assert not has_failed(findings)


def cuda_library(folder: Path, *codes: bytes) -> Path:
    """A library with these modules of CUDA code."""
    first, *others = [runtime.DeviceModule("cuda", code, "cubin", []) for code in codes]
    for other in others:
        first.import_module(other)
    return packer.export_library(first, folder / "cuda.so")


def test_cuda_code_is_compared_with_the_devices(tmp_path) -> None:
    """Each module needs one part that the device takes."""

    def query(kind: str) -> dict[str, object]:
        device = {"name": "GPU", "architecture": "sm_86"}
        return {"version": "12.4", "devices": [device]}

    path = cuda_library(tmp_path, PTX, cubin(80))
    findings = check_library(path, query=query)
    if find_system_library("libcuda.so.1"):
        assert any(f.name == "device GPU (sm_86)" and f.status == "pass" for f in findings)
    else:
        names = {f.name: f for f in findings}
        assert names["driver of cuda"].status == "warn"
        assert names["driver of cuda"].remedy == "install NVIDIA's driver"
        detail = names["device architectures"].detail
        assert detail == "compiled for ptx sm_80, cubin sm_80; no device to compare with"
    assert not has_failed(findings)


def answering(*names: str, architecture: str = "sm_86"):
    """Return a function that answers for a driver with these devices."""
    devices = [{"name": name, "architecture": architecture} for name in names]
    return lambda kind: {"version": "1", "devices": devices}


def test_kernels_that_the_runtime_cannot_launch_are_named(tmp_path) -> None:
    """A kind without a binding, and a format that no driver takes; both only warn."""
    root = runtime.DeviceModule("metal", "kernel void k() {}", "metal", [])
    root.import_module(runtime.DeviceModule("opencl", "int x;", "text", []))
    root.import_module(runtime.DeviceModule("cuda", "__global__ void k() {}", "cuda", []))
    path = packer.export_library(root, tmp_path / "kernels.so")
    findings = by_name(path, query=answering("GPU"))
    assert findings["kernels of metal"].detail.startswith("the runtime launches ")
    assert findings["code of opencl"].detail.startswith("text: no driver accepts it")
    assert findings["code of cuda"].remedy == "compile it to PTX, a cubin or a fatbin"
    assert not has_failed(findings.values())


def test_opencl_kernels_need_a_device(tmp_path) -> None:
    """A loader without a driver is not a device."""
    needs.opencl_device()
    root = runtime.DeviceModule("opencl", "__kernel void k() {}", "cl", [])
    path = packer.export_library(root, tmp_path / "kernels.so")
    findings = by_name(path, query=answering("Some GPU"))
    assert findings["devices of opencl"].detail == "Some GPU"
    finding = by_name(path, query=answering())["devices of opencl"]
    assert (finding.status, finding.remedy[:24]) == ("warn", "install an OpenCL loader")


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "packer", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_exit_code_states_whether_it_would_load(chain, compile_library, tmp_path) -> None:
    """0; 1 with the remedy below the line; and 1 for a file that is not a library."""
    run = check(compile_library("int f;"))
    assert (run.returncode, run.stderr) == (0, "")
    assert all(line.startswith("pass  ") for line in run.stdout.splitlines())
    run = check(chain())
    assert (run.returncode, run.stderr) == (1, "")
    assert "fail  needed libdeep.so: not found" in run.stdout
    assert "      -> install the package that provides it" in run.stdout
    (tmp_path / "text").write_text("text")
    assert check(tmp_path / "text").returncode == 1


ACCEPTED = {"elf_dt_init_other_code.so"}  # its code runs: only a digest could detect it
REFUSED = sorted({path.name for path in FOUND.glob("elf_*.so")} - ACCEPTED)


@pytest.mark.parametrize("name", REFUSED)
def test_library_that_a_load_refuses_fails(name: str) -> None:
    """The check is the load's, with its message; nothing is loaded. `inspect` reports it, too."""
    with pytest.raises(LibraryLoadError) as caught:
        runtime.load(FOUND / name)
    text = caught.value.message.removeprefix(f"{FOUND / name}: ")
    finding = by_name(FOUND / name)["contents"]
    assert finding.status == "fail"
    assert any(text in problem for problem in packer.inspect_library(FOUND / name).problems)
    command = [sys.executable, "-m", "packer", "check", str(FOUND / name)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert shown.returncode == 1
    assert " ".join(text.split()) in " ".join(shown.stdout.split())


def test_json_has_the_same_findings(compile_library) -> None:
    """Name, status, detail and remedy of each."""
    path = compile_library("int f;")
    content = json.loads(check(path, "--json").stdout)
    assert (content["schema"], content["path"], content["ok"]) == (1, str(path), True)
    assert content["findings"] == [finding.to_dict() for finding in check_library(path)]


def test_file_that_is_not_a_library_is_refused(tmp_path) -> None:
    """By name."""
    (tmp_path / "text").write_text("text")
    with pytest.raises(LibraryLoadError, match="not an ELF shared object"):
        check_library(tmp_path / "text")


def test_names_that_nobody_provides_are_listed(tmp_path: Path) -> None:
    """Of the functions in a model's table; the look-up fails then, before any call."""
    names = ["tvm.contrib.sort.sort", "relax.run.unique", "vm.builtin.copy", "test.b", "test.a"]
    for added, status in (([], "pass"), (["test.b", "test.a"], "warn")):
        used = [*names[:3], *added]
        code = [*(call(1, 1 + i, reg(0)) for i in range(len(used))), ret(1)]
        main = Code("main", ["x"], code, 2)
        payload = Program([main, *map(packed, used)]).payload()
        path = packer.export_library(load(Reader(payload)), tmp_path / f"{status}.so")
        found = {f.name: f for f in check_library(path)}["functions of the bytecode"]
        assert found.status == status
        if added:
            assert "has test.a, test.b, nor" in found.detail
            assert "runtime.register_func" in found.remedy
            model = runtime.load(path)
            with pytest.raises(runtime.FunctionNotFoundError, match=r"'test\.b', 'test\.a'"):
                model["main"]
        else:
            assert callable(runtime.load(path)["main"])


def test_weights_of_bytecode_are_looked_up(tmp_path: Path) -> None:
    """All of them are in the library, or the finding names the missing ones."""
    whole = packer.export_library(models.model(), tmp_path / "whole.so")
    found = {finding.name: finding for finding in check_library(whole)}
    assert found["weights"].detail == "all 3 are in the library"
    executable = models.program().executable()
    executable.import_module(packer.CSourceModule(models.OPERATORS, functions=models.FUNCTIONS))
    part = packer.export_library(executable, tmp_path / "part.so")
    found = {finding.name: finding for finding in check_library(part)}
    assert found["weights"].status == "fail"
    assert found["weights"].detail == "no import has dense.bias, dense.weight, scale"


def test_what_tvm_to_2025_would_call_is_named(tmp_path) -> None:
    """A default library has C functions under the plain names; it must not call those."""
    root = packer.CSourceModule(
        "int f(int x) { return x; }\nint g(int x) { return x; }", functions="auto"
    )
    found = by_name(packer.export_library(root, tmp_path / "plain.so"))["TVM to 2025"]
    assert found.status == "pass"
    assert found.detail.startswith("must not call f and 1 more: a C function")
    assert found.detail.endswith("; export with --legacy-calls for it")
    path = packer.export_library(
        root, tmp_path / "legacy.so", output=packer.Output(legacy_calls=True)
    )
    assert (
        by_name(path)["TVM to 2025"].detail
        == "plain names are packed C functions, which it can call"
    )
    hidden = packer.export_library(packer.CSourceModule(""), tmp_path / "none.so")
    assert "TVM to 2025" not in by_name(hidden)

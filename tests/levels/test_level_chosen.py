"""Which CPU level runs: the best one, that of DSO_CPU, or none with a reason in words."""

from __future__ import annotations

import os
import subprocess

import pytest

import packer
import runtime

from ..support import needs
from .levels import (
    LEVELS,
    PROCESSORS,
    SOURCE,
    export,
    qemu,
    require_levels,
    run_c,
    run_python,
)

needs.hardware(os.uname().machine == "x86_64", "x86-64")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library of all levels, which were named out of order."""
    return export(
        tmp_path_factory.mktemp("levels"), SOURCE, build=packer.Build(cpu=[*reversed(LEVELS)])
    )


@pytest.mark.parametrize("how", ["dso", "dlopen"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_best_level_of_a_processor(library, how, processor) -> None:
    """The loader does not matter, and there is no SIGILL below the highest level."""
    number = PROCESSORS[processor][-1]
    assert run_c(library, how, before=qemu(processor)) == (number, "")


@pytest.mark.parametrize("level", LEVELS)
def test_forced_level(library, level) -> None:
    """DSO_CPU, for libdso, for a foreign loader and for Python."""
    require_levels(level)
    assert run_c(library, "dso", level=level) == (level[-1], "")
    assert run_c(library, "dlopen", level=level) == (level[-1], "")
    assert run_python(library, "print(m['level'](), m['add'](40, 2))", level=level) == (
        f"{level[-1]} 42"
    )


def test_loaders_refuse_a_level_above_the_processor(library) -> None:
    """Before its code runs, with the level, the first feature that lacks, and what to do."""
    haswell = qemu("Haswell")
    expected = (
        f"{library}: DSO_CPU=x86-64-v4, expected a processor with avx512f, found one without; "
        "choose a lower level, or unset DSO_CPU"
    )
    found = run_c(library, level="x86-64-v4", before=haswell)
    assert found == ("", f"LibraryLoadError: {expected}")
    found = run_python(library, "", level="x86-64-v4", before=haswell)
    assert found == f"runtime.error.LibraryLoadError: {expected}"


def test_loaders_refuse_a_level_that_the_library_lacks(library, monkeypatch) -> None:
    """The message lists its levels."""
    monkeypatch.setenv("DSO_CPU", "x86-64-v1")
    text = "DSO_CPU=x86-64-v1, expected a level of the library: x86-64-v2 x86-64-v3 x86-64-v4"
    with pytest.raises(runtime.LibraryLoadError, match=text) as caught:
        runtime.load(library)
    assert caught.value.reason == "cpu"
    report = packer.inspect_library(library)
    assert any(text in problem for problem in report.problems)
    failed = [found for found in packer.check_library(library) if found.status == "fail"]
    assert [(found.name, found.detail) for found in failed] == [("cpu", text)]
    assert failed[0].remedy == "choose one, or unset DSO_CPU"
    monkeypatch.delenv("DSO_CPU")
    (passed,) = (found for found in packer.check_library(library) if found.name == "cpu")
    assert (passed.status, passed.detail) == ("pass", ", ".join(LEVELS))


@pytest.mark.parametrize("level", ["x86-64-v4", "sparc"])
def test_foreign_loader_gets_one_line_and_the_best_level(library, level) -> None:
    """It cannot be refused there."""
    found, errors = run_c(library, "dlopen", level=level, before=qemu("Haswell"))
    assert found == "3"
    assert errors == (
        f"DSO_CPU: level {level} is not in a library, or not of this processor; x86-64-v3 is used"
    )


@pytest.mark.parametrize("cpu", [LEVELS, ["x86-64-v2"]])
def test_processor_below_the_lowest_level(cpu, tmp_path) -> None:
    """One level has no dispatcher; its record suffices to refuse it in words."""
    path = export(tmp_path, SOURCE, build=packer.Build(cpu=cpu))
    old = qemu("qemu64,-sse4.1")
    expected = "compiled for x86-64-v2, expected a processor with popcnt, found one without"
    found, errors = run_c(path, before=old)
    assert (found, expected in errors) == ("", True)
    found, errors = run_c(path, "dlopen", before=old)
    assert ("less than x86-64-v2" in errors) is (len(cpu) > 1)


def test_native_is_one_level_for_this_processor(tmp_path) -> None:
    """Without a dispatcher; a lesser processor is refused."""
    path = export(tmp_path, SOURCE, build=packer.Build(cpu="native"))
    report = packer.inspect_library(path)
    assert report.cpu is not None
    assert (report.cpu.levels, report.cpu.lowest) == (("native",), ())
    assert {"sse3", "lahf", "popcnt"} <= {*report.cpu.features[0].split()}
    assert "packer_cpu_set" not in {symbol.name for symbol in report.symbols.static}
    assert runtime.load(path)["add"](40, 2) == 42
    found, errors = run_c(path, before=qemu("qemu64,-sse4.1,-popcnt,-sse3"))
    assert found == ""
    assert "compiled for native, expected a processor with sse3" in errors


def test_static_musl_program_chooses_at_start(tmp_path) -> None:
    """An object with levels needs no loader, and no indirect functions."""
    needs.program("musl-gcc")
    object_file = export(tmp_path, SOURCE, name="model.o")
    main = tmp_path / "main.c"
    main.write_text(
        "#include <stdio.h>\n"
        "long level(void);\n"
        'int main(void) { return printf("%ld\\n", level()) < 0; }\n'
    )
    program = tmp_path / "program"
    subprocess.run(["musl-gcc", "-static", main, object_file, "-o", program], check=True)
    for processor, level in PROCESSORS.items():
        ran = subprocess.run(
            [*qemu(processor), program], stdout=subprocess.PIPE, text=True, check=True
        )
        assert ran.stdout == f"{level[-1]}\n"


def test_library_for_musl(tmp_path) -> None:
    """Its loader has no resolvers of indirect functions; a constructor chooses."""
    needs.program("musl-gcc")
    module = packer.CSourceModule(SOURCE)
    path = tmp_path / "model.so"
    packer.export_library(
        module, path, fcompile=packer.cross_compiler("musl-gcc"), build=packer.Build(cpu=LEVELS)
    )
    main = tmp_path / "main.c"
    main.write_text(
        "#include <dlfcn.h>\n#include <stdio.h>\n"
        "int main(int n, char **v) { void *h = dlopen(v[n - 1], RTLD_NOW); if (!h) return 1;\n"
        '  return printf("%ld\\n", ((long (*)(void))dlsym(h, "level"))()) < 0; }\n'
    )
    program = tmp_path / "program"
    subprocess.run(["musl-gcc", main, "-o", program], check=True)
    env = os.environ | {"DSO_CPU": "x86-64-v2"}
    ran = subprocess.run([program, path], stdout=subprocess.PIPE, text=True, check=True, env=env)
    assert ran.stdout == "2\n"

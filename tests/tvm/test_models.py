"""Models that real TVM compiled run here, without TVM in the process, with TVM's results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from packer.cli import main
from runtime.modules.vm import load
from runtime.serial.stream import Reader, Writer

from ..support.dso_script import text_of
from ..support.relax_programs import finding_model, scaling_model
from ..support.vm_assembler import (
    STR,
    TWICE,
    TWICE_SOURCE,
    Code,
    Program,
    as_version_one,
    call,
    doubling,
    packed,
    reg,
    ret,
)
from .by_c import copying_model, model_by_c, model_on_opencl_by_c, text_of_outcome
from .conftest import TVM_PYTHON, RunScript, read
from .model_calls import CALLS, ON_OPENCL, ONLY_LLVM

MATRIX = [
    (target, name)
    for name in CALLS
    for target in (("llvm",) if name in ONLY_LLVM else ("llvm", "c"))
]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, run_script: RunScript) -> Path:
    """The folder of all models, with the outcomes that TVM had, and those here."""
    folder = tmp_path_factory.mktemp("models")
    run_script(TVM_PYTHON, "make_models.py", folder)
    run_script(sys.executable, "run_model.py", folder)
    return folder


@pytest.mark.parametrize(("target", "name"), MATRIX)
def test_results_equal_those_of_tvm(models: Path, target: str, name: str) -> None:
    """Every result equals TVM's bit by bit; calls that TVM refuses are refused."""
    library = models / f"{target}_{name}.so"
    theirs, (ours, _) = read(library.with_suffix(".outcomes")), read(library.with_suffix(".ours"))
    assert len(theirs) == len(ours) == len(CALLS[name])
    for index, (expected, actual) in enumerate(zip(theirs, ours, strict=True)):
        assert kinds(actual) == kinds(expected), f"call {index}"
        if not isinstance(expected, str):
            np.testing.assert_equal(actual, expected, err_msg=f"call {index}")


@pytest.mark.parametrize(("target", "name"), MATRIX)
def test_a_c_program_has_the_same_results(models: Path, target: str, name: str) -> None:
    """TVM's bit by bit, with the errors of Python's runtime; arguments do not change."""
    library = models / f"{target}_{name}.so"
    theirs, (ours, _) = read(library.with_suffix(".outcomes")), read(library.with_suffix(".ours"))
    expected = [
        mine if isinstance(result, str) else result
        for mine, result in zip(ours, theirs, strict=True)
    ]
    shown = zip(expected, [args for _, args in CALLS[name]], strict=True)
    assert model_by_c(library, CALLS[name]) == [text_of_outcome(*one) for one in shown]


@pytest.mark.parametrize("name", ON_OPENCL)
def test_a_c_program_has_the_same_results_on_opencl(
    models: Path, tmp_path: Path, name: str
) -> None:
    """As Python's runtime on the same device."""
    ours, _ = read(models / f"opencl_{name}.ours")
    copier = copying_model(tmp_path)
    for outcome, one in zip(ours, CALLS[name], strict=True):
        made = arrays(outcome)
        found = model_on_opencl_by_c(models / f"opencl_{name}.so", one, copier, len(made))
        expected = "\n".join(map(text_of, made)) or f"error {outcome}"
        assert found == expected


def arrays(value: Any) -> list[Any]:
    """Return the arrays of a result, one after the other."""
    if isinstance(value, str):
        return []
    return list(value) if isinstance(value, tuple) else [value]


def kinds(value: Any) -> Any:
    """Types and data types."""
    if isinstance(value, tuple):
        return tuple(map(kinds, value))
    return value.dtype if isinstance(value, np.ndarray) else type(value)


@pytest.mark.parametrize("name", CALLS)
def test_bytecode_reads_as_tvm_prints_it(models: Path, name: str) -> None:
    """The text is TVM's, letter by letter."""
    _, text = read(models / f"llvm_{name}.ours")
    assert text == (models / f"llvm_{name}.txt").read_text()


@pytest.mark.parametrize("name", CALLS)
def test_payloads_are_restored_byte_for_byte(models: Path, name: str) -> None:
    """A payload of TVM is written again unchanged."""
    payload = payload_of((models / f"llvm_{name}.so").read_bytes())
    writer = Writer()
    load(Reader(payload)).save_to_binary(writer)
    assert b"".join(bytes(chunk) for chunk in writer.finish()) == payload


@pytest.fixture(scope="session")
def version_one(models: Path, run_script: RunScript) -> Path:
    """The same folder, with the models in bytecode of version 1 and their outcomes."""
    for name in CALLS:
        payload = payload_of((models / f"llvm_{name}.so").read_bytes())
        (models / f"{name}.version_one").write_bytes(as_version_one(payload))
    run_script(TVM_PYTHON, "run_versions.py", models)
    run_script(sys.executable, "run_versions_here.py", models)
    return models


@pytest.mark.parametrize("name", CALLS)
def test_bytecode_of_version_one_has_the_same_results(version_one: Path, name: str) -> None:
    """In TVM and here, as version 2 bit by bit; the payload is written again unchanged."""
    expected = read(version_one / f"llvm_{name}.outcomes")
    for outcomes in (f"{name}.theirs", f"{name}.ours_version_one"):
        for one, other in zip(read(version_one / outcomes), expected, strict=True):
            assert kinds(one) == kinds(other)
            if not isinstance(other, str):
                np.testing.assert_equal(one, other)
    payload = (version_one / f"{name}.version_one").read_bytes()
    writer = Writer()
    load(Reader(payload)).save_to_binary(writer)
    assert b"".join(bytes(chunk) for chunk in writer.finish()) == payload


@pytest.mark.parametrize(
    "payload",
    [doubling().payload(), doubling().version_one({}).payload()],
    ids=["version 2", "version 1"],
)
def test_a_model_of_ours_runs_in_tvm(tmp_path: Path, run_script: RunScript, payload: bytes) -> None:
    """Bytecode of either version and host code that packer exported are a model there."""
    (tmp_path / "twice.c").write_text(TWICE_SOURCE)
    model = load(Reader(payload))
    model.import_module(packer.CSourceModule(tmp_path / "twice.c", functions={"twice": TWICE}))
    packer.export_library(model, tmp_path / "model.so", format="tvm-ffi")
    printed = run_script(TVM_PYTHON, "run_packed_model.py", tmp_path / "model.so")
    assert printed.strip() == "[0.0, 2.0, 4.0, 6.0]"


def test_an_export_that_tvm_loads_without_functions_says_why(
    models: Path, tmp_path: Path, run_script: RunScript, capfd: pytest.CaptureFixture[str]
) -> None:
    """A model with its loaded library, that library, and a model with another host code."""
    path, model = tmp_path / "again.so", runtime.load(models / "llvm_dynamic.so")

    def exported(module: runtime.Module, **options: Any) -> tuple[str, list[str]]:
        packer.export_library(module, path, **options)
        note = capfd.readouterr().err
        return note, run_script(
            TVM_PYTHON, "run_found.py", path, "twice", "vm_load_executable"
        ).split()

    for module in (model, model.imported_modules[0]):
        note, found = exported(module)
        assert not found
        assert f"the functions of <LibraryModule {str(models / 'llvm_dynamic.so')!r}>" in note
        assert "copy that file, or export the tree from its sources with --format tvm-ffi" in note
        assert runtime.load(path).imported_modules or module is not model
    model.clear_imports()
    source = "int twice(int x) { return 2 * x; }"
    model.import_module(packer.CSourceModule(source, functions="auto"))
    note, found = exported(model)
    assert found == ["twice"]
    assert "of <VMExecutable 'relax.VMExecutable'>, since TVM since mid-2025 reads no tree" in note
    assert exported(model, format="tvm-ffi") == ("", ["twice", "vm_load_executable"])


def test_names_that_are_not_utf_8_pass_through_tvm(tmp_path: Path, run_script: RunScript) -> None:
    """TVM loads, runs and exports them; that library has the same payload and runs here."""
    code = [call(1, 1, reg(0)), ret(1)]
    functions = [
        Code("main", ["x\udce9"], code, 2),
        packed("vm.builtin.copy"),
        Code("main\udced\udca0\udc80", ["x"], [ret(0)], 1),
    ]
    payload = Program(functions, [(STR, "\udcff")]).payload()
    (tmp_path / "payload").write_bytes(payload)
    library = tmp_path / "model.so"
    printed = run_script(TVM_PYTHON, "run_raw_names.py", tmp_path / "payload", library)
    assert printed.strip() == "7"
    assert payload_of(library.read_bytes()) == payload
    model = runtime.load(library)
    assert model["main"](7) == model["main\udced\udca0\udc80"](7) == 7
    writer = Writer()
    model.save_to_binary(writer)
    assert b"".join(bytes(chunk) for chunk in writer.finish()) == payload


def test_a_compiled_model_is_refused_by_that_name(
    tmp_path: Path, run_script: RunScript, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the load, with what to do; check says it too."""
    run_script(TVM_PYTHON, "make_compiled.py", tmp_path / "model.so")
    with pytest.raises(runtime.LibraryLoadError, match='exec_mode="compiled", expected bytecode'):
        runtime.load(tmp_path / "model.so")
    with pytest.raises(SystemExit, match="1"):
        main(["check", str(tmp_path / "model.so")])
    assert 'build the model with exec_mode="bytecode"' in capsys.readouterr().out


def test_a_program_of_packer_runs_in_tvm(tmp_path: Path, run_script: RunScript) -> None:
    """Shapes, constants, a branch, a tuple, and a call of another function of the program."""
    packer.export_library(scaling_model(), tmp_path / "model.so", format="tvm-ffi")
    printed = run_script(TVM_PYTHON, "run_packed_program.py", tmp_path / "model.so")
    square, wide = [[[0, 3], [6, 9]]], [[[0, 5, 10], [15, 20, 25]], [[0, 1, 2], [3, 4, 5]]]
    assert json.loads(printed.splitlines()[-1]) == [square, wide]


def test_a_program_that_calls_tvms_functions_has_its_results(
    tmp_path: Path, run_script: RunScript
) -> None:
    """A sort of host code, and functions that bytecode calls by name."""
    path = packer.export_library(finding_model(), tmp_path / "model.so", format="tvm-ffi")
    printed = run_script(TVM_PYTHON, "run_finding_program.py", path)
    x = np.array([3, 1, 2, 3, 0, 1], "float32")
    ours = [value.numpy().tolist() for value in runtime.load(path)["main"](x)]
    sorted_x = [0, 1, 1, 2, 3, 3]
    assert (
        ours
        == json.loads(printed.splitlines()[-1])
        == [sorted_x, sorted({*sorted_x}), [[1, 2, 3, 4, 5]]]
    )


def payload_of(file: bytes) -> bytes:
    """The payload after its key and its length."""
    key = file.index(b"\x12" + bytes(7) + b"relax.VMExecutable") + 26
    nbytes = int.from_bytes(file[key : key + 8], "little")
    return file[key + 8 : key + 8 + nbytes]

"""dso_options.verify in C programs: it gets the sealed bytes that run, under ASan and UBSan."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs
from ...support.libdso import SANITIZE, compile_program
from ...support.needed_library import Pair, link
from ...support.paths import C_SOURCES


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It prints what it verifies, and calls quarter(40)."""
    path = tmp_path_factory.mktemp("verify") / "verify"
    return compile_program((C_SOURCES / "dso_verify.c").read_text(), path, *SANITIZE)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """One for each test."""
    return Pair(tmp_path)


def run(program: Path, pair: Pair, mode: str = "plain", **environment: object) -> list[str]:
    """Load the model; return the lines that were printed."""
    command = [program, mode, pair.model, *pair.trusted]
    names = {name: str(value) for name, value in environment.items()}
    ran = subprocess.run(
        command, env={**os.environ, **names}, capture_output=True, text=True, check=False
    )
    if ran.returncode == 77:
        needs.system("seccomp", "a filter was refused")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


BOTH = ["verify model.so", "verify libhalf.so"]


def test_a_file_and_what_it_needs_are_verified(program, pair) -> None:
    """Once each, the file first."""
    assert run(program, pair) == [*BOTH, "10"]


def test_an_old_struct_verifies(program, pair) -> None:
    """Of a program that was compiled when dso_options ended after verify_context."""
    assert run(program, pair, "old") == [*BOTH, "10"]


def test_a_changed_byte_is_refused(program, pair) -> None:
    """With the error that the program raised, or one that names the file."""
    data = bytearray(pair.model.read_bytes())
    data[len(data) // 2] ^= 1
    pair.model.write_bytes(data)
    assert run(program, pair) == ["verify model.so", "ValueError: not trusted"]
    text = f"LibraryLoadError: {pair.model}: refused by the verification of the program"
    assert run(program, pair, "silent") == ["verify model.so", text]


def test_nothing_of_a_changed_needed_library_runs(program, pair) -> None:
    """Neither its constructor nor the model."""
    pair.link_half(f'-DMARK="{pair.mark}"')
    assert run(program, pair) == [*BOTH, "ValueError: not trusted"]
    assert not pair.mark.exists()


@pytest.mark.parametrize("name", ["model.so", "libhalf.so"])
def test_a_file_that_is_rewritten_during_the_load_does_not_run(program, pair, name) -> None:
    """Its copy was made before it was verified, and the copy is opened."""
    link("-o", "evil.so", "half.c", "-DBY=1", f'-DMARK="{pair.mark}"', cwd=pair.folder)
    evil, path = pair.folder / "evil.so", pair.folder / name
    files = {"COPIED_AT": name, "COPIED_FROM": evil, "COPIED_TO": path}
    assert run(program, pair, **files) == [*BOTH, "10"]
    assert path.read_bytes() == evil.read_bytes()
    assert not pair.mark.exists()


def test_verified_bytes_run_beside_a_writer(program, pair) -> None:
    """A thread rewrites, cuts and replaces the file."""
    module = packer.CSourceModule("int quarter(int x) { return x; }", functions="auto")
    bad = packer.export_library(module, pair.folder / "bad.so")
    (line,) = run(program, pair, "writer", COPIED_FROM=bad, ROUNDS=150)
    assert line.endswith(" refused, 0 wrong")


def test_only_what_was_verified_is_used_again(program, pair) -> None:
    """An unverified tree of the same file is not; needed libraries are asked of again."""
    bytes_again = ["verify bytes", "verify libhalf.so", "0 1"]
    refused = [*BOTH, "ValueError: not trusted"]
    assert run(program, pair, "again") == [*BOTH, *bytes_again, *refused, "10"]


def test_a_needed_library_that_is_open_unverified_is_refused(program, pair) -> None:
    """The loader would take it, since it has the SONAME."""
    *verified, error = run(program, pair, "beside")
    assert verified == BOTH
    text = f"needs 'libhalf.so', and {pair.half} is open under this name, which was not verified"
    assert error == f"LibraryLoadError: {pair.model}: {text}; load this library first"


def test_what_a_library_within_needs_is_verified(program, pair) -> None:
    """The library itself belongs to the bytes around it; it has no folder for $ORIGIN."""
    pair.export(rpath=str(pair.folder))
    root = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    root.import_module(runtime.load(pair.model))
    outer = packer.export_library(root, pair.folder / "outer.so")
    pair.model = outer
    pair.trusted = [outer, pair.half]
    assert run(program, pair) == ["verify outer.so", "verify libhalf.so", "10"]
    pair.trusted = [outer]
    assert run(program, pair)[1:] == ["verify libhalf.so", "ValueError: not trusted"]


@pytest.mark.parametrize(
    ("mode", "reason"), [("no memfd", "Function not implemented"), ("no seals", "Invalid argument")]
)
def test_there_is_no_load_without_sealed_memory(program, pair, mode, reason) -> None:
    """And nothing is verified."""
    text = f"{pair.model}: cannot be loaded from a sealed file in memory: {reason}"
    assert run(program, pair, mode) == [f"LibraryLoadError: {text}"]


# ---- Needed libraries that are refused


def refusal(program: Path, pair: Pair) -> str:
    """The error of a load of what is there now."""
    pair.trusted = [pair.model, pair.half]
    return run(program, pair)[-1].removeprefix(f"LibraryLoadError: {pair.model}: ")


def test_another_soname_is_refused(program, pair) -> None:
    """ld.so would search for a file that was not verified."""
    for soname, found in (("-Wl,-soname,libother.so", "libother.so"), ("-g", "none")):
        pair.link_half(soname=soname)
        assert refusal(program, pair) == (
            f"needs 'libhalf.so': {pair.half} has SONAME {found}, expected 'libhalf.so', since a "
            "verified library is found by it; link it with -soname"
        )


def test_a_name_with_a_folder_is_refused(program, pair) -> None:
    """ld.so opens such a file without a search."""
    pair.link_half(soname="-g")
    pair.export("./libhalf.so")
    text = "needs './libhalf.so', expected a name without a folder; link it with -soname"
    assert refusal(program, pair) == text


def test_unknown_tokens_are_refused(program, pair) -> None:
    """Libdso does not know what ld.so makes of them."""
    pair.export(rpath="$ORIGIN/none:/a/$LIB")
    text = "searches '/a/$LIB' for libraries, expected folders without tokens but $ORIGIN"
    assert refusal(program, pair) == f"{text}; link it with -rpath"


def test_a_cycle_is_refused(program, pair) -> None:
    """After as many libraries as a real one does not need."""
    code = pair.folder / "model.c"
    code.write_text("int half(int x); int quarter(int x) { return half(half(x)); }")
    names = ("-Wl,-soname,libmodel.so", "-Wl,-rpath,$ORIGIN")
    link(*names, "-o", "libmodel.so", "model.c", "-L.", "-lhalf", cwd=pair.folder)
    pair.link_half("-L.", "-Wl,--no-as-needed", "-lmodel", "-Wl,-rpath,$ORIGIN")
    pair.trusted = [pair.model, pair.half, pair.folder / "libmodel.so"]
    *verified, text = run(program, pair)
    assert text.endswith("libraries that need each other, deeper than 32")
    assert len(verified) == 33


def test_a_planted_file_is_not_searched(program, pair) -> None:
    """The system's library is open before it appears in a folder of the run path."""
    needs.header("samplerate.h", "libsamplerate0-dev")
    (pair.folder / "evil.c").write_text('const char *src_get_version(void) { return "evil"; }')
    link("-Wl,-soname,libsamplerate.so.0", "-o", "evil.so", "evil.c", cwd=pair.folder)
    code = (
        "const char *src_get_version(void); int half(int x);"
        "int quarter(int x) { return half(src_get_version()[0] == 'e' ? 0 : half(x)); }"
    )
    module = packer.CSourceModule(code, functions={"quarter": "int(int)"})
    options = ["-L.", "-lsamplerate", "-lhalf", "-Wl,-rpath,$ORIGIN"]
    packer.export_library(module, pair.model, options=options, build=packer.Build(cwd=pair.folder))
    pair.trusted = [pair.model, pair.half]
    planted = pair.folder / "libsamplerate.so.0"
    # Copied when libhalf.so is verified: the search for the other one is over.
    files = {"COPIED_FROM": pair.folder / "evil.so", "COPIED_TO": planted}
    assert run(program, pair, COPIED_AT="libhalf.so", **files)[-1] == "10"
    assert planted.exists()
    assert run(program, pair)[-1] == "ValueError: not trusted"

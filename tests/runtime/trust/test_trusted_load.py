"""Loads that verify first: by digest, by key, and by the policy of a process."""

from __future__ import annotations

import base64
import gc
import hashlib
import os
import pickle
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import packer
import runtime
from packer.trust.sign import sign_library
from runtime import Trust
from runtime.error import VerifyError

from ...support import needs
from ...support.compile import compile_c
from ...support.process import run_python
from ...support.signing import keys, library

LEAVES_A_MARK = """
#include <stdio.h>
__attribute__((constructor)) static void leave_a_mark(void) { fclose(fopen(MARK, "w")); }
int twice(int x) { return 2 * x; }
"""


@pytest.fixture(autouse=True)
def no_policy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test begins and ends without a policy."""
    monkeypatch.delenv("DSO_TRUST", raising=False)
    yield
    runtime.set_trust_policy(None)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def marking(folder: Path) -> tuple[Path, Path]:
    """Export a library whose constructor makes a file; return both."""
    mark = folder / "mark"
    module = packer.CSourceModule(
        LEAVES_A_MARK, functions="auto", options=[f'-DMARK="{mark}"', "-O1"]
    )
    path = packer.export_library(module, folder / "marking.so")
    mark.unlink(missing_ok=True)
    return path, mark


def test_a_digest_decides(tmp_path: Path) -> None:
    """The file with it loads; another one does not run."""
    path, mark = marking(tmp_path)
    assert runtime.load(path, trust=Trust.sha256(digest(path).upper()))["twice"](4) == 8
    mark.unlink()
    with pytest.raises(VerifyError, match="sha256 .*, expected 0000") as raised:
        runtime.load(path, trust=Trust.sha256("0" * 64))
    assert (raised.value.reason, raised.value.path) == ("digest", str(path))
    assert not mark.exists()


def test_a_key_decides(tmp_path: Path) -> None:
    """A signature beside the file, and one inside it."""
    private, public = keys(tmp_path)
    beside, inside = tmp_path / "beside.so", tmp_path / "inside.so"
    sign_library(library(beside), private, version="1.4")
    sign_library(library(inside, output=packer.Output(signature_room=8192)), private, embed=True)
    other = keys(tmp_path, "other")[1]
    for path in (beside, inside):
        assert runtime.load(path, trust=Trust.keys(public))["add"](40, 2) == 42
        with pytest.raises(VerifyError):
            runtime.load(path, trust=Trust.keys(other))
    with pytest.raises(VerifyError, match="version 1.4, expected 2"):
        runtime.load(beside, trust=Trust.keys(public, minimum_version="2"))
    (tmp_path / "beside.so.sigstore.json").unlink()
    with pytest.raises(VerifyError, match="no signature"):
        runtime.load(beside, trust=Trust.keys(public))


def test_nothing_of_a_refused_file_runs(tmp_path: Path) -> None:
    """Not even its constructor; a changed byte is enough."""
    private, public = keys(tmp_path)
    path, mark = marking(tmp_path)
    sign_library(path, private)
    mark.unlink(missing_ok=True)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(VerifyError, match="was changed"):
        runtime.load(path, trust=Trust.keys(public))
    assert not mark.exists()


def test_equal_bytes_are_one_module(tmp_path: Path) -> None:
    """Wherever they are; a load without trust is another one."""
    path = library(tmp_path / "model.so")
    copy = shutil.copy(path, tmp_path / "copy.so")
    trust = Trust.sha256(digest(path))
    first = runtime.load(path, trust=trust)
    assert runtime.load(copy, trust=trust) is first
    assert runtime.load(path) is not first
    assert runtime.load_from_bytes(path.read_bytes(), trust=trust) is first


def test_bytes_prove_the_same(tmp_path: Path) -> None:
    """With a signature inside, since nothing is beside them."""
    private, public = keys(tmp_path)
    path = library(tmp_path / "model.so", output=packer.Output(signature_room=8192))
    with pytest.raises(VerifyError, match="no signature"):
        runtime.load_from_bytes(path.read_bytes(), trust=Trust.keys(public))
    sign_library(path, private, embed=True)
    loaded = runtime.load_from_bytes(path.read_bytes(), trust=Trust.keys(public))
    assert loaded["add"](1, 2) == 3


def test_anyone_is_a_plain_load(tmp_path: Path) -> None:
    """Without a policy: the same module, and no copy."""
    path = library(tmp_path / "model.so")
    plain = runtime.load(path)
    assert runtime.load(path, trust=Trust.anyone()) is plain


def test_a_rule_is_no_boolean(tmp_path: Path) -> None:
    """Nothing else is taken for one."""
    path = library(tmp_path / "model.so")
    with pytest.raises(TypeError, match="trust: expected a runtime.Trust, found False"):
        runtime.load(path, trust=False)


def test_the_error_of_a_trusted_file_names_it(tmp_path: Path) -> None:
    """And not the copy."""
    path = tmp_path / "text.so"
    path.write_text("no library")
    with pytest.raises(runtime.LibraryLoadError) as raised:
        runtime.load(path, trust=Trust.sha256(digest(path)))
    assert (raised.value.path, "/proc" in str(raised.value)) == (str(path), False)


def test_a_rule_inside_a_verified_load_is_asked(tmp_path: Path) -> None:
    """A loader of the program that verifies what it loads is not passed over."""
    inner = library(tmp_path / "inner.so").read_bytes()

    def load(reader: runtime.Reader) -> runtime.Module:
        return runtime.load_from_bytes(bytes(reader.read_bytes()), trust=Trust.sha256("0" * 64))

    class Carrier(runtime.Module):
        type_key = "test.trusted_carrier"
        property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE

        def save_to_binary(self, writer: runtime.Writer) -> None:
            writer.write_bytes(inner)

    runtime.register_loader("test.trusted_carrier")(load)
    root = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    root.import_module(Carrier())
    path = packer.export_library(root, tmp_path / "outer.so")
    with pytest.raises(VerifyError, match="sha256"):
        runtime.load(path, trust=Trust.sha256(digest(path)))


@pytest.mark.parametrize("digests", [(), ("abc",), ("g" * 64,), (7,)])
def test_malformed_digests_are_refused(digests: tuple[object, ...]) -> None:
    """When the rule is made."""
    with pytest.raises(ValueError, match="expected 64 hexadecimal digits"):
        Trust.sha256(*digests)


# ---- The policy of a process


def policy_of(folder: Path, text: str) -> Path:
    """Write a policy file."""
    path = folder / "trust.toml"
    path.write_text(text)
    return path


def test_the_longest_folder_decides(tmp_path: Path) -> None:
    """Files elsewhere are refused, and symbolic links are followed (H1)."""
    private, _public = keys(tmp_path)
    models, tools = tmp_path / "models", tmp_path / "models" / "tools"
    tools.mkdir(parents=True)
    signed, unsigned = library(models / "signed.so"), library(models / "unsigned.so")
    tool, stray = library(tools / "tool.so"), library(tmp_path / "stray.so")
    sign_library(signed, private)
    runtime.set_trust_policy(
        policy_of(
            tmp_path,
            '[[folder]]\npath = "models"\nkeys = ["acme.pub"]\n'
            '[[folder]]\npath = "models/tools"\ntrust = "anyone"\n',
        )
    )
    for path in (signed, tool):
        assert runtime.load(path)["add"](1, 2) == 3
    (tools / "link.so").symlink_to(unsigned)
    for path in (unsigned, tools / "link.so"):
        with pytest.raises(VerifyError, match="no signature"):
            runtime.load(path)
    with pytest.raises(VerifyError, match="in no folder of the trust policy"):
        runtime.load(stray)


DOORS: dict[str, Callable[[bytes], object]] = {
    "load_from_bytes": runtime.load_from_bytes,
    "base64": lambda data: runtime.import_module_from_base64(base64.b64encode(data)),
    "pickle": pickle.loads,
    "json": lambda data: runtime.load_json(data),
}


@pytest.mark.parametrize("door", ["load_from_bytes", "base64", "pickle", "json"])
def test_the_policy_rules_bytes(door: str, tmp_path: Path) -> None:
    """Every way in which bytes become a module; [bytes] says which."""
    path = library(tmp_path / "model.so")
    model = runtime.load(path)
    forms = {
        "load_from_bytes": path.read_bytes(),
        "base64": runtime.export_module_to_base64(model),
        "pickle": pickle.dumps(model),
        "json": runtime.save_json(model),
    }
    read = {**DOORS, "base64": runtime.import_module_from_base64}[door]
    text = f'[bytes]\nsha256 = ["{digest(path)}"]\n'
    runtime.set_trust_policy(policy_of(tmp_path, text))
    assert read(forms[door])["add"](1, 2) == 3
    runtime.set_trust_policy(policy_of(tmp_path, 'default = "anyone"\n'))
    with pytest.raises(VerifyError, match=r"bytes without \[bytes\]"):
        read(forms[door])


def test_a_library_inside_is_verified_with_the_whole(tmp_path: Path) -> None:
    """It is part of the signed bytes, so it needs no other signature."""
    private, public = keys(tmp_path)
    inner = runtime.load(library(tmp_path / "inner.so"))
    root = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    root.import_module(inner)
    path = packer.export_library(root, tmp_path / "outer.so")
    sign_library(path, private)
    del inner
    runtime.set_trust_policy(Trust.keys(public))
    model = runtime.load(path)
    assert model["one"]() == 1
    assert model.imported_modules[0]["add"](1, 2) == 3


def test_standalone_files_are_verified(tmp_path: Path) -> None:
    """Device code and weights, by their digests."""
    path = tmp_path / "kernel.cl"
    path.write_text("__kernel void k(__global float *x) { x[0] = 1; }")
    rule = Trust.sha256(digest(path))
    assert runtime.load(path, trust=rule).function_names() == ["k"]
    path.write_text("__kernel void k(__global float *x) { x[0] = 2; }")
    with pytest.raises(VerifyError, match="sha256"):
        runtime.load(path, trust=rule)


BAD = {
    "no TOML": ("=", "trust policy"),
    "unknown key": ("defalt = 'anyone'", "unknown key 'defalt', expected default, folder, bytes"),
    "no path": ("[[folder]]\ntrust = 'anyone'", "path, expected a folder"),
    "no rule": (
        "[[folder]]\npath = '.'",
        "expected one of trust, keys, .* found 0",
    ),
    "two rules": (
        "[[folder]]\npath = '.'\ntrust = 'anyone'\nsha256 = ['a']",
        "expected one of trust, keys, sha256 and sigstore, found 2",
    ),
    "no such key": ("[[folder]]\npath = '.'\nkeys = ['none.pub']", "none.pub"),
    "a boolean": ("[[folder]]\npath = '.'\ntrust = true", 'expected "anyone", found True'),
    "a digest": ("[bytes]\nsha256 = ['a']", "expected 64 hexadecimal digits"),
    "too deep": ("a = " + "[" * 5000, "trust policy"),
    "twice": (
        "[[folder]]\npath = '.'\ntrust = 'anyone'\n[[folder]]\npath = './'\ntrust = 'anyone'",
        "is there twice",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_policy_that_cannot_be_read_refuses_everything(
    text: str, message: str, tmp_path: Path
) -> None:
    """When it is set, and at every load until another one is."""
    path = library(tmp_path / "model.so")
    with pytest.raises(VerifyError, match=message) as raised:
        runtime.set_trust_policy(policy_of(tmp_path, text))
    assert raised.value.reason == "policy"
    for load in (lambda: runtime.load(path), lambda: runtime.load_from_bytes(path.read_bytes())):
        with pytest.raises(VerifyError, match="cannot be used, so every file is refused"):
            load()
    runtime.set_trust_policy(None)
    assert runtime.load(path)["add"](1, 2) == 3


FROM_ENVIRONMENT = """
import json, sys
import runtime
try:
    print(json.dumps(runtime.load(sys.argv[1])["add"](40, 2)))
except runtime.PackerError as error:
    print(json.dumps(str(error)))
"""


def test_the_environment_names_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a fresh process; a policy that is missing refuses everything."""
    path = library(tmp_path / "model.so")
    text = f'[[folder]]\npath = "."\nsha256 = ["{digest(path)}"]\n'
    monkeypatch.setenv("DSO_TRUST", str(policy_of(tmp_path, text)))
    assert run_python(FROM_ENVIRONMENT, str(path)) == 42
    other = library(tmp_path / "other.so", output=packer.Output(metadata={"other": True}))
    assert "sha256" in run_python(FROM_ENVIRONMENT, str(other))
    monkeypatch.setenv("DSO_TRUST", str(tmp_path / "none.toml"))
    assert "every file is refused" in run_python(FROM_ENVIRONMENT, str(path))


def test_a_variable_that_is_set_later_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next load reads it, also if nothing of trust was imported before."""
    path = library(tmp_path / "model.so")
    monkeypatch.setenv("POLICY", str(policy_of(tmp_path, 'default = "refuse"\n')))
    code = FROM_ENVIRONMENT.replace(
        "try:", "import os; os.environ['DSO_TRUST'] = os.environ['POLICY']\ntry:"
    )
    assert "in no folder of the trust policy" in run_python(code, str(path))


def test_a_relative_policy_stays_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It means the folder in which the process started, wherever the process goes."""
    path = library(tmp_path / "model.so")
    for name, default in (("first", "refuse"), ("second", "anyone")):
        (tmp_path / name).mkdir()
        policy_of(tmp_path / name, f'default = "{default}"\n')
    monkeypatch.setenv("DSO_TRUST", "trust.toml")
    monkeypatch.chdir(tmp_path / "first")
    moved = FROM_ENVIRONMENT.replace(
        "try:", f"import os; os.chdir({str(tmp_path / 'second')!r})\ntry:"
    )
    assert "in no folder of the trust policy" in run_python(moved, str(path))


@pytest.mark.parametrize(
    "kind", ['keys = ["acme.pub"]', 'sigstore = {identity = "a", issuer = "b"}']
)
def test_a_minimum_that_is_no_version_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    """When the policy is read, not when a file is verified."""
    keys(tmp_path)
    for version in ("banana", "1.2.x", ""):
        row = f'[[folder]]\npath = "."\n{kind}\nminimum_version = "{version}"\n'
        with pytest.raises(VerifyError, match=f"minimum_version '{version}': "):
            runtime.set_trust_policy(policy_of(tmp_path, row))
    with pytest.raises(ValueError, match="minimum_version 'banana': "):
        Trust.keys(tmp_path / "acme.pub", minimum_version="banana")


# ---- Libraries that it needs


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A library that needs another one in its own folder; none of another test is in use."""
    gc.collect()
    (tmp_path / "half.c").write_text("int half(int x) { return x / 2; }")
    needed = tmp_path / "libhalf.so"
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libhalf.so", "-o", needed, "half.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    code = "int half(int x); int quarter(int x) { return half(half(x)); }"
    module = packer.CSourceModule(code, functions={"quarter": "int(int)"})
    link = ["-L.", "-lhalf", "-Wl,-rpath,$ORIGIN"]
    path = packer.export_library(
        module, tmp_path / "model.so", options=link, build=packer.Build(cwd=tmp_path)
    )
    return path, needed


def test_a_needed_library_is_verified_first(pair: tuple[Path, Path]) -> None:
    """By the same rule: nothing runs before all are verified."""
    path, needed = pair
    with pytest.raises(VerifyError) as raised:
        runtime.load(path, trust=Trust.sha256(digest(path)))
    assert raised.value.path == str(needed)
    both = Trust.sha256(digest(path), digest(needed))
    assert runtime.load(path, trust=both)["quarter"](40) == 10


def test_what_another_rule_accepted_is_verified_again(pair: tuple[Path, Path]) -> None:
    """Also where the library is in use already."""
    path, needed = pair
    model = runtime.load(path, trust=Trust.sha256(digest(path), digest(needed)))
    with pytest.raises(VerifyError) as raised:
        runtime.load(path, trust=Trust.sha256(digest(path)))
    assert raised.value.path == str(needed)
    assert model["quarter"](40) == 10


PLANTED = """
import json, shutil, sys
import runtime
from runtime.trust import opening

path, digest, evil, folder = sys.argv[1:]

def plant(*args, **options):
    shutil.copy(evil, f"{folder}/libsamplerate.so.0")
    return found(*args, **options)

found, opening.Library = opening.Library, plant
print(json.dumps(runtime.load(path, trust=runtime.Trust.sha256(digest))["version"]()))
"""


def test_a_file_that_appears_in_a_searched_folder_is_not_loaded(tmp_path: Path) -> None:
    """After everything was verified: ld.so has the library of the system by then."""
    needs.header("samplerate.h", "libsamplerate0-dev")
    folder = tmp_path / "searched"
    folder.mkdir()
    (tmp_path / "evil.c").write_text('const char *src_get_version(void) { return "evil"; }')
    evil = tmp_path / "evil.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", evil, tmp_path / "evil.c"], check=True)
    code = (
        "const char *src_get_version(void); const char *version(void) { return src_get_version(); }"
    )
    module = packer.CSourceModule(code, functions={"version": "const char *()"})
    link = ["-lsamplerate", f"-Wl,-rpath,{folder}"]
    path = packer.export_library(module, tmp_path / "model.so", options=link)
    found = run_python(PLANTED, str(path), digest(path), str(evil), str(folder))
    assert "libsamplerate" in found


def test_a_needed_library_of_another_soname_is_refused(pair: tuple[Path, Path]) -> None:
    """ld.so would search for a file that was not verified."""
    path, needed = pair
    source = needed.with_name("half.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", needed, source], check=True)
    both = Trust.sha256(digest(path), digest(needed))
    with pytest.raises(VerifyError, match="has SONAME none, expected 'libhalf.so'") as raised:
        runtime.load(path, trust=both)
    assert raised.value.reason == "needed"


FINDS = """
import json, os, sys
import runtime
path, digest, *removed = sys.argv[1:]
for name in removed:
    del os.environ[name]
try:
    print(json.dumps(runtime.load(path, trust=runtime.Trust.sha256(digest))["half"](4)))
except runtime.VerifyError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture
def needing(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path, Path]:
    """A library that needs `libmark.so`, that library, and what its constructor makes.

    The parameter is the folder in which the first one searches.
    """
    folder, mark = tmp_path / "elsewhere", tmp_path / "mark"
    folder.mkdir()
    (tmp_path / "mark.c").write_text(LEAVES_A_MARK.replace("twice", "half_of"))
    evil = folder / "libmark.so"
    command = ["cc", "-shared", "-fPIC", f'-DMARK="{mark}"', "-Wl,-soname,libmark.so", "-o", evil]
    subprocess.run([*command, tmp_path / "mark.c"], check=True)
    code = "int half_of(int x); int half(int x) { return half_of(x); }"
    module = packer.CSourceModule(code, functions={"half": "int(int)"})
    link = [f"-L{folder}", "-lmark"]
    if rpath := getattr(request, "param", ""):
        link.append(f"-Wl,-rpath,{tmp_path / rpath}")
    return packer.export_library(module, tmp_path / "model.so", options=link), evil, mark


@pytest.mark.parametrize(
    ("where", "removed", "message"),
    [
        ("", (), "sha256"),
        ("", ("LD_LIBRARY_PATH",), "sha256"),  # ld.so keeps the value of the start
        ("glibc-hwcaps/x86-64-v2", (), "in no folder that is searched"),
    ],
)
def test_a_library_that_the_environment_leads_to_is_verified(
    needing: tuple[Path, Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    removed: tuple[str, ...],
    message: str,
) -> None:
    """However ld.so would find it; its constructor does not run."""
    path, evil, mark = needing
    folder = evil.parent / where
    folder.mkdir(parents=True, exist_ok=True)
    evil.rename(folder / evil.name)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(evil.parent))
    assert message in run_python(FINDS, str(path), digest(path), *removed)
    assert not mark.exists()


def test_what_a_library_of_the_system_needs_is_of_the_system(
    needing: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the environment leads to another file; GCC's libmpfr needs libgmp."""
    path, evil, mark = needing
    outer = next(Path("/usr/lib").glob("*/libmpfr.so.6"), None)
    if outer is None or not outer.with_name("libgmp.so.10").exists():
        needs.system("libmpfr.so.6 and libgmp.so.10", "it has another compiler")
    evil.rename(evil.with_name("libgmp.so.10"))
    module = packer.CSourceModule("int half(int x) { return x / 2; }", functions="auto")
    options = ["-Wl,--no-as-needed", f"-l:{outer.name}"]
    packer.export_library(module, path, options=options)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(evil.parent))
    mark.unlink(missing_ok=True)
    assert run_python(FINDS, str(path), digest(path)) == 2
    assert not mark.exists()


@pytest.mark.parametrize("needing", ["elsewhere"], indirect=True)
def test_what_a_carried_library_needs_is_verified(needing: tuple[Path, Path, Path]) -> None:
    """The carried library is a part of verified bytes; the library that it needs is not."""
    path, _, mark = needing
    root = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    root.import_module(runtime.load(path))
    outer = packer.export_library(root, path.with_name("outer.so"))
    mark.unlink()
    assert "sha256" in run_python(FINDS, str(outer), digest(outer))
    assert not mark.exists()


@pytest.mark.parametrize("needing", ["turned"], indirect=True)
def test_a_link_that_is_turned_leads_to_no_other_file(needing: tuple[Path, Path, Path]) -> None:
    """The file that was opened is the one that is judged, copied and loaded."""
    path, evil, mark = needing
    folder, end = path.with_name("turned"), threading.Event()
    folder.mkdir()
    system = next(Path("/usr/lib").glob("*-linux-gnu/libm.so.6"))

    def turn() -> None:
        while not end.is_set():
            for target in (system, evil):
                (folder / "new").symlink_to(target)
                (folder / "new").rename(folder / "libmark.so")

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        for _ in range(300):
            with pytest.raises(VerifyError):
                runtime.load(path, trust=Trust.sha256(digest(path)))
    finally:
        end.set()
        thread.join()
    assert not mark.exists()


@pytest.mark.parametrize("needing", ["elsewhere"], indirect=True)
def test_a_library_that_is_open_unverified_is_refused(needing: tuple[Path, Path, Path]) -> None:
    """ld.so would take it for its SONAME; equal verified bytes serve two libraries."""
    path, evil, _ = needing
    both = f"{digest(path)} {digest(evil)}"
    code = (
        "import ctypes, json, sys, runtime\n"
        "path, digests, evil = sys.argv[1:]\n"
        "trust = runtime.Trust.sha256(*digests.split())\n"
        "if evil: ctypes.CDLL(evil)\n"
        "try: print(json.dumps(runtime.load(path, trust=trust)['half'](4)))\n"
        "except runtime.VerifyError as error: print(json.dumps(str(error)))\n"
    )
    assert run_python(code, str(path), both, "") == 8
    text = f"needs 'libmark.so', and {evil} is open under this name, which was not verified"
    assert text in run_python(code, str(path), both, str(evil))


def test_an_open_library_is_refused_where_no_folder_is_searched(tmp_path: Path) -> None:
    """Without a RUNPATH ld.so takes what is open under the name; libm is of the system."""
    half = compile_c(
        "int half(int x) { return x / 2; }", tmp_path / "libhalf.so", "-Wl,-soname,libhalf.so"
    )
    code = "int half(int); int quarter(int a) { return half(half(a)); }"
    module = packer.CSourceModule(code, functions={"quarter": "int(int)"})
    options = [f"-L{tmp_path}", "-lhalf", "-Wl,--no-as-needed,-lm"]
    path = packer.export_library(module, tmp_path / "model.so", options=options)
    code = (
        "import ctypes, json, sys, runtime\n"
        "path, digest, half = sys.argv[1:]\n"
        "ctypes.CDLL('libm.so.6'), ctypes.CDLL(half)\n"
        "try: runtime.load(path, trust=runtime.Trust.sha256(digest))\n"
        "except runtime.VerifyError as error: print(json.dumps(str(error)))\n"
    )
    text = f"needs 'libhalf.so', and {half} is open under this name, which was not verified"
    assert text in run_python(code, str(path), digest(path), str(half))


# ---- Beside a writer


def test_the_verified_bytes_run(tmp_path: Path) -> None:
    """While a thread replaces, rewrites and cuts the file (H4)."""
    good, bad = tmp_path / "good.so", tmp_path / "bad.so"
    for path, sign in ((good, "+"), (bad, "-")):
        code = f"long add(long a, long b) {{ return a {sign} b; }}"
        root = packer.CSourceModule(code, functions={"add": "long(long a, long b)"})
        packer.export_library(root, path)
    path, trust = tmp_path / "model.so", Trust.sha256(digest(good))
    contents = [file.read_bytes() for file in (good, bad)]
    end = threading.Event()

    def write() -> None:
        number = 0
        while not end.is_set():
            number += 1
            data = contents[number % 2]
            if number % 3 == 0:
                path.write_bytes(data)
            elif number % 7 == 0:
                os.truncate(path, len(data) // 2)
            else:
                other = path.with_suffix(f".{number}")
                other.write_bytes(data)
                other.rename(path)

    path.write_bytes(contents[0])
    writer = threading.Thread(target=write)
    writer.start()
    counts = {"refused": 0, "loaded": 0}
    until = time.monotonic() + 60
    try:
        while min(counts.values()) < 100 and time.monotonic() < until:
            try:
                model = runtime.load(path, trust=trust)
            except VerifyError:
                counts["refused"] += 1
                continue
            counts["loaded"] += 1
            assert model["add"](40, 2) == 42
            del model
    finally:
        end.set()
        writer.join()
    assert min(counts.values()) == 100, counts

"""Verified loads that leave the weights in the file, and verify each one when it is first used."""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from packer.trust.sign import sign_library
from runtime import Trust, registry
from runtime._core import ElfFile
from runtime.error import VerifyError
from runtime.modules.safetensors import SafetensorsModule
from runtime.serial.stream import Writer, read_chunk

from ...support import signing
from ...support.paths import TESTS
from ...support.process import run_python
from . import signed_weights as signed
from .signed_weights import MIB, arrays, flip, middle_of

X = np.ones(signed.LENGTH, "f4")


def graph_sum(model: runtime.Module) -> Any:
    """Run the graph, whose parameter is a weight."""
    executor = model["default"]()
    executor.run(x=X)
    return executor.get_output(0).numpy() - 1


def stored_again(model: runtime.Module) -> Any:
    """Write the file of weights as bytes, and read it."""
    module = next(m for m in model.imported_modules if isinstance(m, SafetensorsModule))
    return runtime.SafetensorsModule(written(module)).weights["w1"].numpy()


def written(module: runtime.Module) -> bytes:
    """The payload after its padding."""
    writer = Writer()
    module.save_to_binary(writer)
    data = b"".join(map(read_chunk, writer.finish()))
    return data[8 + int.from_bytes(data[:8], "little") :]


def first_weight(module: runtime.Module) -> Any:
    """A tensor of one module, without the tree's mapping."""
    return module.imported_modules[0].own_weights["w1"]


# Every way by which bytes of a weight leave, and the library it leaves.
WAYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "look-up": ("host", lambda m: m.weights["w1"].numpy()),
    "items": ("host", lambda m: dict(m.weights.items())["w1"].numpy()),
    "raw": ("host", lambda m: np.frombuffer(first_weight(m).raw, "f4")),
    "buffer": ("host", lambda m: np.asarray(memoryview(first_weight(m)))),
    "dlpack": ("host", lambda m: np.from_dlpack(first_weight(m))),
    "copy": ("host", lambda m: first_weight(m).copyto("cpu").numpy()),
    "dso_weight": ("host", lambda m: m["weight_sum"]("w1")),
    "payload": ("host", stored_again),
    "pickle": ("host", lambda m: pickle.loads(pickle.dumps(m)).weights["w1"].numpy()),
    "constant": ("constants", lambda m: m["get_const_var_ndarray"]()["w1"].numpy()),
    "host code": ("constants", lambda m: m["conv"](2.0)),
    "executor": ("factory", graph_sum),
    "bytecode": ("bytecode", lambda m: m["main"]()[0].numpy()),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed library of each kind."""
    made = tmp_path_factory.mktemp("signed")
    for name in ("host", "constants", "factory", "bytecode"):
        signed.export(getattr(signed, name)(), made, f"{name}.so")
    return made


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copy a library and its bundle, to change it."""

    def copy(name: str) -> Path:
        path = tmp_path / f"{name}.so"
        for file in (path, signing.sidecar(path)):
            shutil.copy(folder / file.name, file)
        return path

    return copy


@pytest.fixture
def trust(folder: Path) -> Trust:
    """The key that signed them."""
    return Trust.keys(folder / "acme.pub")


def pieces_of(module: runtime.Module) -> Any:
    """The pieces of its file that are mapped, or None."""
    assert module._loaded_from is not None
    return module._loaded_from.pieces


@pytest.mark.parametrize("way", WAYS)
def test_a_weight_is_verified_before_it_leaves(way, folder, copied, trust) -> None:
    """By every way the signed values, or an error; the load itself only reads what it needs."""
    name, use = WAYS[way]
    path = folder / f"{name}.so"
    loaded = runtime.load(path, trust=trust)
    assert pieces_of(loaded) is not None
    assert np.array_equal(use(loaded), use(runtime.load(path)))
    changed = copied(name)
    flip(changed, middle_of(changed))
    loaded = runtime.load(changed, trust=trust)
    for _ in range(2):
        with pytest.raises(VerifyError, match="0x.* differ from those signed") as raised:
            use(loaded)
        assert (raised.value.reason, raised.value.path) == ("digest", str(changed))


def test_only_the_pieces_of_a_weight_are_verified(copied, trust) -> None:
    """The others can be used; with "copy" nothing of the file can."""
    path = copied("host")
    flip(path, middle_of(path, "w2"))
    loaded = runtime.load(path, trust=trust)
    for name in ("w0", "w1", "w3"):
        assert np.array_equal(loaded.weights[name].numpy(), arrays()[name])
    with pytest.raises(VerifyError):
        loaded.weights["w2"]
    with pytest.raises(VerifyError, match="sha256"):
        runtime.load(path, trust=trust, weights="copy")


def test_the_blob_is_not_copied(folder, trust) -> None:
    """The sealed copy has a hole where the file is mapped."""
    loaded = runtime.load(folder / "host.so", trust=trust)
    offset, view = pieces_of(loaded)
    state = os.fstat(loaded._loaded_from.descriptor)
    assert (offset % MIB, len(view) % MIB) == (0, 0)
    assert len(view) > 9 * MIB
    assert state.st_blocks * 512 < 4 * MIB
    digest = hashlib.sha256((folder / "host.so").read_bytes()).hexdigest()
    assert loaded._opened_for.file.sha256 == digest
    maps = Path("/proc/self/maps").read_text().splitlines()
    assert any(line.endswith("/host.so") and " r--p " not in line for line in maps)
    copy = runtime.load(folder / "host.so", trust=trust, weights="copy")
    assert (pieces_of(copy), copy is loaded) == (None, False)
    assert np.array_equal(copy.weights["w0"].numpy(), arrays()["w0"])


def test_metadata_among_the_weights_is_verified_by_the_load(copied, trust) -> None:
    """The header of the third array is within the blob's mapped pieces."""
    path = copied("constants")
    shape = path.read_bytes().find(arrays()["w2"][:64].tobytes()) - 16
    flip(path, shape)
    with pytest.raises(VerifyError, match="differ from those signed"):
        runtime.load(path, trust=trust)


def test_other_libraries_are_copied_whole(tmp_path) -> None:
    """The blob of the embedders "c" and "llvm" is among the constants of the code."""
    root = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    root.import_module(runtime.DeviceModule("cuda", "// ptx", "ptx", []))
    for embed in ("c", "llvm", "segment"):
        path = packer.export_library(
            root, tmp_path / f"{embed}.so", build=packer.Build(embed=embed)
        )
        assert ElfFile(path).is_separate("__tvm_dev_mblob") == (embed == "segment")
    path = signed.export(signed.bytecode(), tmp_path, "llvm.so", build=packer.Build(embed="llvm"))
    loaded = runtime.load(path, trust=Trust.keys(tmp_path / "acme.pub"))
    assert pieces_of(loaded) is None
    assert np.array_equal(loaded["main"]()[0].numpy(), arrays()["w1"])


def test_code_that_refers_to_the_blob_gets_its_bytes(tmp_path) -> None:
    """Then all of it is copied, since the code asks for no proof."""
    source = (
        "extern const unsigned char __tvm_dev_mblob[];\n"
        "const unsigned char *volatile kept = __tvm_dev_mblob + 2 * 1048576 + 13;\n"
        "int of_code(long i) { return __tvm_dev_mblob[i]; }\n"
        "int of_data(void) { return *kept; }\n"
    )
    root = packer.CSourceModule(source, functions="auto")
    root.import_module(signed.host().imported_modules[0])
    preemptible = [
        "-Wl,-Bno-symbolic"
    ]  # packer binds symbols at the link, before it moves the blob
    path = signed.export(root, tmp_path, "referring.so", options=preemptible)
    loaded = runtime.load(path, trust=Trust.keys(tmp_path / "acme.pub"))
    assert pieces_of(loaded) is None
    blob = bytes(loaded._loaded_from.data("__tvm_dev_mblob"))
    assert (loaded["of_code"](5 * MIB + 1), loaded["of_data"]()) == (
        blob[5 * MIB + 1],
        blob[2 * MIB + 13],
    )


def test_a_library_without_section_headers_is_copied_whole(folder, tmp_path, trust) -> None:
    """Nothing shows then that the segment was made for the blob."""
    path = tmp_path / "host.so"
    data = bytearray((folder / "host.so").read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)  # e_shoff, e_shnum and e_shstrndx
    path.write_bytes(data)
    sign_library(path, folder / "acme.key")
    loaded = runtime.load(path, trust=trust)
    assert pieces_of(loaded) is None
    assert np.array_equal(loaded.weights["w1"].numpy(), arrays()["w1"])


def test_rules_without_a_tree_need_all_bytes(folder, trust) -> None:
    """A digest is one of the whole file; beside a key too, and by a policy."""
    path = folder / "host.so"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert pieces_of(runtime.load(path, trust=Trust.sha256(digest))) is None
    runtime.set_trust_policy(Trust.sha256(digest))
    try:
        assert pieces_of(runtime.load(path, trust=trust)) is None
        runtime.set_trust_policy(Trust.anyone())
        assert pieces_of(runtime.load(path)) is None
        assert pieces_of(runtime.load(path, trust=trust)) is not None
    finally:
        runtime.set_trust_policy(None)


def test_weights_takes_two_words(folder, trust) -> None:
    """Without a rule there is nothing to seal, so "copy" would promise what no load does."""
    path = folder / "host.so"
    with pytest.raises(ValueError, match="weights: expected 'map' or 'copy', found 'all'"):
        runtime.load(path, trust=trust, weights="all")
    with pytest.raises(ValueError, match="weights: expected a rule beside 'copy'"):
        runtime.load(path, weights="copy")
    assert pieces_of(runtime.load(path, weights="map")) is None


def test_who_may_write_to_the_file_can_change_weights_later(copied, trust) -> None:
    """The attack that docs/trust-policy.md names: after the verification, with "map" only."""
    path = copied("host")
    mapped = runtime.load(path, trust=trust)
    copy = runtime.load(path, trust=trust, weights="copy")
    expected = arrays()["w1"]
    views = [model.weights["w1"].numpy() for model in (mapped, copy)]
    assert all(np.array_equal(view, expected) for view in views)
    flip(path, middle_of(path))
    assert [np.array_equal(view, expected) for view in views] == [False, True]


def test_metadata_does_not_change_after_the_load(copied, trust) -> None:
    """Pieces with more than tensors are replaced by verified copies: here with array headers."""
    path = copied("constants")
    loaded = runtime.load(path, trust=trust)
    header = path.read_bytes().find(arrays()["w2"][:64].tobytes()) - 16
    offset, view = pieces_of(loaded)
    before = view[header - offset]
    flip(path, header)
    assert view[header - offset] == before
    with pytest.raises(VerifyError):
        runtime.load(path, trust=trust)


def test_a_file_that_was_written_to_is_verified_anew(copied, trust) -> None:
    """The same file gives the same module; another state of it gives another one."""
    path = copied("host")
    first = runtime.load(path, trust=trust)
    assert runtime.load(path, trust=trust) is first
    assert first.weights["w1"].numpy()[0] == arrays()["w1"][0]
    flip(path, middle_of(path))
    second = runtime.load(path, trust=trust)
    assert second is not first
    with pytest.raises(VerifyError):
        second.weights["w1"]


def test_a_file_that_was_cut_is_an_error(copied, trust) -> None:
    """Not a signal, as long as its weights were not verified."""
    path = copied("host")
    loaded = runtime.load(path, trust=trust)
    os.truncate(path, 4 * MIB)
    with pytest.raises(VerifyError, match="ends before byte .* cut after it was opened") as raised:
        loaded.weights["w3"]
    assert raised.value.reason == "size"


def test_a_replaced_file_does_not_matter(copied, trust) -> None:
    """A rename leaves the open file as it is."""
    path = copied("host")
    loaded = runtime.load(path, trust=trust)
    (path.parent / "new").write_bytes(b"other")
    os.replace(path.parent / "new", path)
    assert np.array_equal(loaded.weights["w3"].numpy(), arrays()["w3"])


def test_weights_outlive_modules_and_close_the_file(copied, trust) -> None:
    """The last view unmaps it."""
    path = copied("host")
    weight = runtime.load(path, trust=trust).weights["w2"]
    gc.collect()
    array = weight.numpy()
    del weight
    assert np.array_equal(array, arrays()["w2"])
    assert str(path) in Path("/proc/self/maps").read_text()
    before = len(os.listdir("/proc/self/fd"))
    del array
    gc.collect()
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert len(os.listdir("/proc/self/fd")) == before - 2


def test_threads_verify_at_once(copied, trust) -> None:
    """Each gets the signed values; a changed weight is an error in each."""
    path = copied("host")
    flip(path, middle_of(path, "w2"))
    loaded = runtime.load(path, trust=trust)
    found: list[object] = []

    def use(name: str) -> None:
        try:
            found.append(np.array_equal(loaded.weights[name].numpy(), arrays()[name]))
        except VerifyError as error:
            found.append(error.reason)

    threads = [threading.Thread(target=use, args=(f"w{i % 4}",)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == ["True"] * 12 + ["digest"] * 4


def test_a_child_process_verifies_too(folder) -> None:
    """After a fork the pieces are still verified when they are used."""
    code = """
import os, sys, runtime
model = runtime.load(sys.argv[1], trust=runtime.Trust.keys(sys.argv[2]))
child = os.fork()
if child == 0:
    os._exit(bytes(model.weights["w1"].raw[:4])[3])
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    found = run_python(code, str(folder / "host.so"), str(folder / "acme.pub"))
    assert found == arrays()["w1"].tobytes()[3]


def test_what_was_not_verified_cannot_be_read(folder, tmp_path) -> None:
    """Code that asks for no proof ends the process, and gets no byte."""
    code = (
        "import sys, runtime\n"
        "model = runtime.load(sys.argv[1], trust=runtime.Trust.keys(sys.argv[2]))\n"
        "offset, view = model._loaded_from.pieces\n"
        "print(view[0])\n"
    )
    command = [sys.executable, "-c", code, str(folder / "host.so"), str(folder / "acme.pub")]
    ran = subprocess.run(command, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (-11, b"")


def test_a_loader_in_python_reads_verified_bytes(tmp_path, monkeypatch) -> None:
    """Its payload is verified before it gets it."""

    class Bytes(runtime.Module):
        type_key = "test.bytes"
        property_mask = 1

        def __init__(self, data: bytes) -> None:
            self.data = data

        def save_to_binary(self, writer: Any) -> None:
            writer.write_u64(len(self.data))
            writer.write_raw(self.data)

    def read(reader: Any) -> Bytes:
        return Bytes(bytes(reader.read_bytes()))

    monkeypatch.setitem(registry._loaders, "test.bytes", read)
    root = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    root.import_module(Bytes(bytes(range(256)) * 4 * 4096))
    path = signed.export(root, tmp_path, "bytes.so")
    trust = Trust.keys(tmp_path / "acme.pub")
    loaded = runtime.load(path, trust=trust)
    assert pieces_of(loaded) is not None
    assert loaded.imported_modules[0].data == bytes(range(256)) * 4 * 4096
    flip(path, 2 * MIB + 5)
    with pytest.raises(VerifyError):
        runtime.load(path, trust=trust)


@pytest.mark.parametrize("row", [("trust_flips", 40), ("trust_race", 80)])
def test_attacks_end_in_errors(row) -> None:
    """A sample of the long tests: changed bytes, and a process that writes during loads."""
    name, count = row
    script = TESTS / "stress" / f"{name}.py"
    command = [sys.executable, script, "--count", str(count)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 0, ran.stdout + ran.stderr

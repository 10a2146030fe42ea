"""runtime.load(path, key=...): encrypted modules are what they were, and hidden without the key."""

from __future__ import annotations

import ctypes
import gc
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.trust.sign import sign_library
from runtime.error import EncryptionError, ExportError
from runtime.module import preorder
from runtime.trust.encryption.memory import SecretMemory

from ....support import models, signing
from . import encrypted


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key."""
    return encrypted.key_file(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="module")
def library(key: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of `encrypted.tree`, encrypted."""
    path = tmp_path_factory.mktemp("library") / "model.so"
    root = encrypted.tree()
    with packer.encrypting(root, key):
        return packer.export_library(root, path, output=packer.Output(signature_room=8192))


def test_every_kind_of_module_comes_back(library, key) -> None:
    """Graph, bytecode, weights, constants and kernels work as they do in a plain library."""
    root = runtime.load(library, key=key)
    x = np.ones((2, 3), "f4")
    executor = root["net"]()
    executor.set_input("x", x)
    executor.run()
    assert np.array_equal(np.from_dlpack(executor.get_output(0)), x + encrypted.WEIGHTS)

    rows = np.random.default_rng(2).normal(size=(3, models.INNER)).astype("f4")
    program = encrypted.module_of(root, "relax.VMExecutable")
    scores, hidden = (np.from_dlpack(y) for y in program["main"](rows))
    expected = np.maximum(rows @ models.WEIGHT + models.BIAS, 0)
    assert np.allclose(hidden, expected, atol=1e-4)
    assert np.allclose(scores, expected * models.SCALE, atol=1e-4)
    assert [node.name for node in program.model_record.nodes] == ["/dense/MatMul", "/Mul"]

    kernels = encrypted.module_of(root, "opencl")
    assert bytes(kernels.data).decode().endswith(encrypted.SOURCE)
    assert np.array_equal(np.from_dlpack(root.weights["secret_constant"]), encrypted.WEIGHTS)


def test_nothing_of_them_is_in_the_file(library, tmp_path) -> None:
    """Neither names nor values; a plain export of the tree has all of them."""
    plain = packer.export_library(encrypted.tree(), tmp_path / "plain.so").read_bytes()
    hidden = library.read_bytes()
    present = [secret for secret in encrypted.SECRETS if secret in plain]
    assert len(present) >= len(encrypted.SECRETS) - 1
    assert not [secret for secret in present if secret in hidden]


def test_an_export_after_it_is_in_clear(key, tmp_path) -> None:
    """The tree is not changed: its exports have the bytes that they had."""
    root = models.weights()
    before = packer.export_library(root, tmp_path / "a.so").read_bytes()
    with packer.encrypting(root, key):
        packer.export_library(root, tmp_path / "a.so")
    assert packer.export_library(root, tmp_path / "a.so").read_bytes() == before


def test_weights_are_served_from_the_decrypted_pages(library, key) -> None:
    """Once in memory: locked, in no core dump, of no file, and not writable."""
    tensor = runtime.load(library, key=key).weights["scale"]
    array = np.from_dlpack(tensor)
    assert array.ctypes.data % 64 == 0
    found = _mapping_of(array.ctypes.data)
    assert found.splitlines()[0].split()[1] == "r--p"
    assert len(found.splitlines()[0].split()) == 5  # anonymous
    assert " dd" in found  # MADV_DONTDUMP
    assert np.array_equal(array, models.SCALE)


def _mapping_of(address: int) -> str:
    """The lines of /proc/self/smaps about an address."""
    blocks = re.split(r"\n(?=[0-9a-f]+-)", Path("/proc/self/smaps").read_text())
    for block in blocks:
        start, end = (int(text, 16) for text in block.split()[0].split("-"))
        if start <= address < end:
            return block
    raise AssertionError(hex(address))


def test_memory_is_wiped_when_it_is_freed() -> None:
    """Also after it was protected."""
    memory = SecretMemory(1 << 16)
    memory[:6] = b"secret"
    memory.protect()
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.string_at(address, 6) == b"secret"
    memory.__del__()
    assert ctypes.string_at(address, 1 << 16) == bytes(1 << 16)


def test_a_program_ends_without_a_word_about_the_memory(library, key) -> None:
    """Also if the modules live until its end."""
    code = (
        "import sys, runtime\n"
        "model = runtime.load(sys.argv[1], key=sys.argv[2])\n"
        "runtime.register_func('kept', model.weights.get)\n"
    )
    command = [sys.executable, "-P", "-c", code, library, key]
    given = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (given.stdout, given.stderr) == ("", "")


def test_a_loaded_library_needs_its_key_again(library, key, tmp_path) -> None:
    """A load without it does not get what another one decrypted."""
    root = runtime.load(library, key=key)
    assert runtime.load(library, key=key) is root
    other = encrypted.key_file(tmp_path)
    data = library.read_bytes()
    assert encrypted.reason_of(lambda: runtime.load(library)) == "no-key"
    assert encrypted.reason_of(lambda: runtime.load(library, key=other)) == "wrong-key"
    assert encrypted.reason_of(lambda: runtime.load_from_bytes(data)) == "no-key"
    assert runtime.load_from_bytes(data, key=key) is root


def test_open_data_works_without_the_key(library, key) -> None:
    """Encrypted modules have no functions and no weights, and an error says why."""
    root = runtime.open_data(library)
    kinds = {module.type_key for module in preorder(root)}
    assert kinds == {"encrypted", "library"} and not list(root.weights)
    with pytest.raises(EncryptionError, match="encrypted with key"):
        root["net"]
    host = encrypted.module_of(root, "library")
    with pytest.raises(AttributeError, match="opened without its key"):
        host["secret_kernel"]
    with pytest.raises(KeyError, match="opened without its key"):
        root.weights["scale"]
    assert np.array_equal(
        np.from_dlpack(runtime.open_data(library, key=key).weights["scale"]), models.SCALE
    )


def test_decrypted_modules_are_not_written_in_clear(library, key, tmp_path) -> None:
    """The bytes of a tree stay encrypted; a module alone would lose its place, and is refused."""
    root = runtime.load(library, key=key)
    kernels = encrypted.module_of(root, "opencl")
    data = pickle.dumps(root)
    assert not [secret for secret in encrypted.SECRETS if secret in data]
    with pytest.raises(ExportError, match="cannot be written at"):
        pickle.dumps(kernels)
    with pytest.raises(ExportError, match="cannot be written at"):
        packer.export_library(kernels, tmp_path / "again.so")
    with packer.encrypting(kernels, key):
        again = packer.export_library(kernels, tmp_path / "again.so")
    assert bytes(runtime.load(again, key=key).data) == bytes(kernels.data)
    del root, kernels
    gc.collect()
    assert encrypted.reason_of(lambda: pickle.loads(data)) == "no-key"
    with runtime.decrypting(key):
        assert np.array_equal(np.from_dlpack(pickle.loads(data).weights["scale"]), models.SCALE)


def test_a_verified_load_takes_a_key(library, key, tmp_path) -> None:
    """Trust and encryption do not know each other."""
    private, public = signing.keys(tmp_path)
    copy = tmp_path / "model.so"
    copy.write_bytes(library.read_bytes())
    sign_library(copy, private, embed=True)
    trust = runtime.Trust.keys(public)
    root = runtime.load(copy, trust=trust, key=key)
    assert root.weights["scale"].shape == (models.COLUMNS,)
    assert encrypted.reason_of(lambda: runtime.load(copy, trust=trust)) == "no-key"
    del root
    gc.collect()
    assert encrypted.reason_of(lambda: runtime.load(copy, trust=trust)) == "no-key"


def test_dialect_tvm_ffi_has_the_same_modules(key, tmp_path) -> None:
    """Its payloads have a length before them, and device code has further fields."""
    root = encrypted.tree()
    with packer.encrypting(root, key):
        path = packer.export_library(root, tmp_path / "ffi.so", format="tvm-ffi")
    loaded = runtime.load(path, key=key)
    assert np.array_equal(np.from_dlpack(loaded.weights["scale"]), models.SCALE)
    assert encrypted.module_of(loaded, "opencl").function_names() == ["secret_kernel"]

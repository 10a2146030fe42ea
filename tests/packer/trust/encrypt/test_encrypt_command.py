"""packer keygen --encryption, export --encrypt-key, and the commands that read the library."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import packer as packer_module
import runtime

from ....support import needs, signing
from ....support.command_line import Packer, done, refused
from ....support.dso_driver import shown_by_c

VALUES = np.arange(1000, 2000, dtype="f4")


@pytest.fixture
def sources(tmp_path: Path, packer: Packer) -> Path:
    """A source, weights and a key, in the folder where the command runs."""
    (tmp_path / "a.c").write_text("long add(long a, long b) { return a + b; }\n")
    save_file({"secret.weight": VALUES}, tmp_path / "w.safetensors")
    assert "id" in done(packer("keygen", "acme", "--encryption"))
    return tmp_path


def hides(path: Path) -> bool:
    """Return True if neither name nor values are in a file."""
    data = path.read_bytes()
    return not any(secret in data for secret in (b"secret", VALUES[:4].tobytes()))


def test_keygen_makes_a_key_that_only_its_owner_reads(sources, packer: Packer) -> None:
    """And never replaces one."""
    key = sources / "acme.aes"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    text = key.read_text()
    assert text.startswith("dso-aes256-key:") and text.endswith("\n")
    assert len(base64.b64decode(text.partition(":")[2])) == 32
    assert "never replaced" in refused(packer("keygen", "acme", "--encryption"))
    assert key.read_text() == text
    given = packer("keygen", "b", "--encryption", "--passphrase")
    assert given.returncode == 2 and "not allowed with" in given.stderr


def test_export_encrypts_and_load_decrypts(sources, packer: Packer) -> None:
    """Without the key the library shows its size and the id of the key."""
    words = ["export", "m.so", "a.c", "--weights", "w.safetensors", "--sbom"]
    out = done(packer(*words, "--encrypt-key", "acme.aes", "--encrypt", "weights"))
    assert "encrypted: safetensors" in out
    library = sources / "m.so"
    assert hides(library)
    key_id = runtime.open_data(library).imported_modules[0].header.key_id.hex()

    shown = done(packer("inspect", "m.so")) + done(packer("inspect", "m.so", "--blob"))
    assert f"key_id: {key_id}" in shown and "was not decrypted" in shown and "secret" not in shown
    assert json.loads(done(packer("inspect", "m.so", "--json")))["modules"][1]["tensors"] == []
    assert "not decrypted, so what is in it was not checked" in done(packer("check", "m.so"))
    assert done(packer("diff", "m.so", "m.so")) == ""
    done(packer("extract", "m.so", "-o", "parts"))
    assert "It is encrypted" in (sources / "parts" / "packer.toml").read_text()
    assert hides(sources / "parts" / "encrypted.bin")
    bill = done(packer("sbom", "m.so"))
    assert "encrypted" in bill and "secret" not in bill

    assert "no key is given" in refused(packer("load", "m.so", "add", "40", "2"))
    assert "add(40, 2) -> 42" in done(packer("load", "--key", "acme.aes", "m.so", "add", "40", "2"))
    loaded = runtime.load(library, key=sources / "acme.aes")
    assert np.array_equal(np.from_dlpack(loaded.weights["secret.weight"]), VALUES)


def test_packer_toml_names_key_and_parts(sources, packer: Packer) -> None:
    """Relative to its folder; the option takes precedence."""
    (sources / "packer.toml").write_text(
        '[library]\noutput = "m.so"\nencrypt_key = "acme.aes"\nencrypt = ["weights"]\n'
        '[module.host]\nkind = "c"\nsources = ["a.c"]\nfunctions = "auto"\nimports = ["w"]\n'
        '[module.w]\nkind = "safetensors"\nsources = ["w.safetensors"]\n'
    )
    assert "encrypted: safetensors" in done(packer("export"))
    assert hides(sources / "m.so")
    assert "names no module" in refused(packer("export", "--encrypt", "graph"))
    text = (sources / "packer.toml").read_text().replace('encrypt_key = "acme.aes"\n', "")
    (sources / "packer.toml").write_text(text)
    assert "expected encrypt_key" in refused(packer("export"))


def test_wrong_usage_of_the_options(sources, packer: Packer) -> None:
    """A key that others may read causes a warning; a key as an argument is refused unshown."""
    words = ["export", "m.so", "a.c", "--weights", "w.safetensors"]
    given = packer(*words, "--encrypt", "weights")
    assert given.returncode == 2 and "needs --encrypt-key" in given.stderr
    key = sources / "acme.aes"
    line = key.read_text().strip()
    text = refused(packer(*words, "--encrypt-key", line))
    assert "the key itself" in text and line not in text
    assert "key cannot be read" in refused(packer(*words, "--encrypt-key", "none.aes"))
    key.chmod(0o644)
    given = packer(*words, "--encrypt-key", "acme.aes")
    assert given.returncode == 0 and "chmod 600 acme.aes" in given.stderr


def test_a_key_on_a_token_encrypts_and_decrypts(sources, packer: Packer) -> None:
    """SoftHSM, whose AES-256-GCM has the bytes of cryptography's: each reads the other's file."""
    token = signing.Token(sources)
    raw = base64.b64decode((sources / "acme.aes").read_text().partition(":")[2])
    uri = token.load_aes(raw, "models")
    given = {**token.environment, "DSO_PKCS11_PIN": signing.PIN}
    words = ["export", "m.so", "a.c", "--weights", "w.safetensors", "--encrypt-key"]
    done(packer(*words, uri, env=given))
    assert runtime.load(sources / "m.so", key=raw).weights["secret.weight"].shape == (1000,)
    done(packer(*words, "acme.aes"))
    load = ["load", "--quiet", "--key", uri, "m.so", "add", "40", "2"]
    assert "42" in done(packer(*load, env=given))

    def refusal(name: str, environment: dict[str, str] = given) -> str:
        words = ["load", "--key", name, "m.so"]
        return refused(packer(*words, env=environment, stdin=subprocess.DEVNULL))

    assert "another key" in refusal(token.load_aes(bytes(32), "other"))
    assert "of 128 bits of AES, expected AES of 256" in refusal(token.load_aes(bytes(16), "short"))
    assert "the PIN is wrong" in refusal(uri, {**given, "DSO_PKCS11_PIN": "0000"})
    assert "set DSO_PKCS11_PIN" in refusal(uri, token.environment)
    assert "no AES key of this name" in refusal(token.uri("none"))


def test_tvm_refuses_an_encrypted_module_by_its_name(sources) -> None:
    """It has no loader of this type key."""
    needs.importable("tvm_ffi", "test")
    root = packer_module.CSourceModule(sources / "a.c", functions={"add": "long(long a, long b)"})
    root.import_module(runtime.SafetensorsModule(sources / "w.safetensors"))
    with packer_module.encrypting(root, bytes(32)):
        packer_module.export_library(root, sources / "ffi.so", format="tvm-ffi")
    code = "import sys, tvm_ffi; tvm_ffi.load_module(sys.argv[1])"
    command = [sys.executable, "-P", "-c", code, sources / "ffi.so"]
    given = subprocess.run(command, capture_output=True, text=True, check=False)
    assert given.returncode == 1 and "using {encrypted}" in given.stderr


def test_libdso_carries_encrypted_modules_and_says_so(sources, packer: Packer) -> None:
    """It has no cryptography: host code works, and the module cannot be used."""
    needs.program("cc")
    words = ["export", "m.so", "a.c", "--weights", "w.safetensors", "--encrypt-key", "acme.aes"]
    done(packer(*words))
    shown = shown_by_c(sources / "m.so")
    assert "encrypted" in shown and "secret" not in shown
    found = packer("check", "--without-python", "m.so")
    assert found.returncode == 1 and "libdso has no cryptography" in found.stdout

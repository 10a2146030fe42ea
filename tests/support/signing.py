"""Libraries, keys and tokens for tests of signatures."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer.trust.sign.keys import create_keys
from runtime.error import VerifyError
from runtime.trust.verify import verify_file

from . import needs

TOKEN_MODULES = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so",
)
PIN = "5678"


def library(path: Path, **options: Any) -> Path:
    """Export one function and a module of constants."""
    code = "long add(long a, long b) { return a + b; }"
    root = packer.CSourceModule(code, functions={"add": "long(long a, long b)"})
    root.import_module(runtime.DeviceModule("opencl", "__kernel void k() {}", "cl", []))
    return packer.export_library(root, path, **options)


def keys(folder: Path, name: str = "acme", algorithm: str = "ed25519") -> tuple[Path, Path]:
    """Make a pair of keys."""
    return create_keys(folder / name, algorithm=algorithm)


def payload_of(bundle: dict[str, Any]) -> dict[str, Any]:
    """Decode the statement of a bundle."""
    decoded: dict[str, Any] = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    return decoded


def signed_again(bundle: dict[str, Any], statement: object, key: Path) -> bytes:
    """Sign another statement with a key, by nothing but OpenSSL's command and DSSE's rule."""
    payload = statement if isinstance(statement, bytes) else json.dumps(statement).encode()
    envelope = bundle["dsseEnvelope"]
    kind = envelope["payloadType"].encode()
    data = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    signature = by_openssl(key, data)
    changed = {
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"sig": base64.b64encode(signature).decode()}],
    }
    return json.dumps({**bundle, "dsseEnvelope": {**envelope, **changed}}).encode()


def by_openssl(key: Path, data: bytes) -> bytes:
    """Sign data with an Ed25519 key."""
    file = key.with_suffix(".data")
    file.write_bytes(data)
    command = [needs.program("openssl"), "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", file]
    return subprocess.run(command, capture_output=True, check=True).stdout


def openssl_verifies(public: Path, signature: bytes, data: bytes, algorithm: str) -> bool:
    """Verify a signature with OpenSSL's command."""
    file, sig = public.with_suffix(".data"), public.with_suffix(".sig")
    file.write_bytes(data)
    sig.write_bytes(signature)
    command = [needs.program("openssl"), "pkeyutl", "-verify", "-pubin", "-inkey", public]
    digest = ["-digest", "sha256"] if algorithm == "ecdsa-p256" else []
    words = [*command, "-rawin", *digest, "-in", file, "-sigfile", sig]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def sidecar(path: Path) -> Path:
    """The bundle beside a library."""
    return path.with_name(f"{path.name}.sigstore.json")


def reason_of(path: Path, *keys: Path, **options: object) -> str:
    """Verify, and return the reason of the refusal, which takes at most 100 ms of this process."""
    started = time.process_time()
    with pytest.raises(VerifyError) as caught:
        verify_file(path, keys, **options)  # type: ignore[arg-type]
    assert time.process_time() - started < 0.1
    assert ": " in str(caught.value)
    return caught.value.reason


_LOAD_AES = """
import sys
import pkcs11
from pkcs11 import Attribute, KeyType, ObjectClass
module, pin, label = sys.argv[1:]
with pkcs11.lib(module).get_token(token_label="release").open(user_pin=pin, rw=True) as session:
    session.create_object({
        Attribute.CLASS: ObjectClass.SECRET_KEY, Attribute.KEY_TYPE: KeyType.AES,
        Attribute.VALUE: sys.stdin.buffer.read(), Attribute.LABEL: label, Attribute.TOKEN: True,
        Attribute.ENCRYPT: True, Attribute.DECRYPT: True,
        Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False,
    })
"""


class Token:
    """A SoftHSM token with keys of several algorithms, whose labels are the algorithms."""

    def __init__(self, folder: Path) -> None:
        needs.program("softhsm2-util")
        found = [path for path in TOKEN_MODULES if os.path.exists(path)]
        self.module = found[0]
        (folder / "tokens").mkdir()
        config = folder / "softhsm2.conf"
        config.write_text(f"directories.tokendir = {folder / 'tokens'}\n")
        self.environment = {**os.environ, "SOFTHSM2_CONF": str(config)}
        words = ["--init-token", "--free", "--label", "release", "--so-pin", "1", "--pin", PIN]
        self._run("softhsm2-util", *(word if word != "1" else "12345678" for word in words))

    def _run(self, *command: str) -> str:
        return subprocess.check_output(command, env=self.environment, text=True)

    def load(self, pem: Path, label: str) -> str:
        """Put a private key on the token; return its URI."""
        words = ["--import", str(pem), "--token", "release", "--label", label, "--id", "0A"]
        self._run("softhsm2-util", *words, "--pin", PIN)
        return self.uri(label)

    def load_aes(self, key: bytes, label: str) -> str:
        """Put an AES key on the token, which never leaves it; return its URI."""
        script = [sys.executable, "-c", _LOAD_AES, self.module, PIN, label]
        subprocess.run(script, env=self.environment, input=key, check=True)
        return self.uri(label)

    def uri(self, label: str) -> str:
        """Name a key."""
        return f"pkcs11:token=release;object={label}?module-path={self.module}"

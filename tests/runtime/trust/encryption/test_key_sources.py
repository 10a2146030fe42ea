"""Keys for encryption: every source, every refusal, and nothing of a key in any text."""

from __future__ import annotations

import base64
import pickle
import subprocess
import sys

import pytest

from runtime.error import EncryptionError
from runtime.trust.encryption.keys import PREFIX, LocalKey, find_key

from ....support import models
from . import encrypted

KEY = bytes(range(100, 132))
LINE = PREFIX + base64.b64encode(KEY).decode()


@pytest.fixture(scope="module")
def blob() -> bytes:
    """Weights, encrypted with KEY."""
    return encrypted.blob_of(models.weights(), KEY)


def test_every_source_gives_the_key(blob, tmp_path, monkeypatch) -> None:
    """A file, a variable, bytes, and a callback that gets the id and returns any of these."""
    file = tmp_path / "acme.aes"
    file.write_text(f"{LINE}\r\n")
    monkeypatch.setenv("ACME_KEY", LINE)
    asked = []

    def callback(key_id: str) -> object:
        asked.append(key_id)
        return file

    for source in (file, str(file), "env:ACME_KEY", KEY, bytearray(KEY), callback):
        assert encrypted.tree_of(blob, source).weights["scale"].shape == (models.COLUMNS,)
    assert asked == [LocalKey(KEY).key_id.hex()]


def test_a_key_that_cannot_be_used_is_refused(blob, tmp_path, monkeypatch) -> None:
    """Each with its reason; the message has the place of the key and nothing of the key."""
    monkeypatch.delenv("ACME_KEY", raising=False)
    file = tmp_path / "acme.aes"
    contents = {
        b"": "found 0 bytes",
        KEY: "found 32 raw bytes",
        LINE.encode()[:-4]: "base64 is malformed|24 bytes|bytes, expected a key of 32",
        PREFIX.encode() + base64.b64encode(KEY[:16]): "16 bytes, expected a key of 32",
        PREFIX.encode() + b"!" * 44: "base64 is malformed",
        LINE.encode() + b"\n" + LINE.encode(): "base64 is malformed",
        b"x" * 5000: "5000 bytes",
        b"-----BEGIN PRIVATE KEY-----\n": "expected one line",
    }
    for data, text in contents.items():
        file.write_bytes(data)
        refuses(blob, file, text)
    refuses(blob, tmp_path, "not a regular file")
    refuses(blob, tmp_path / "none", "No such file")
    refuses(blob, "env:ACME_KEY", "is not set")
    refuses(blob, LINE, "the key itself")
    refuses(blob, KEY[:31], "31 bytes, expected a key of 32")
    refuses(blob, lambda _: None, "has no such key")
    refuses(blob, lambda _: KEY + b"x", "33 bytes")
    refuses(blob, "pkcs11:token=a", "expected the token", reason="token")
    refuses(blob, f"pkcs11:token=a;object=b?pin-value={LINE}", "others see it", reason="token")
    with pytest.raises(TypeError, match="expected a path"):
        encrypted.tree_of(blob, 42)


def refuses(blob: bytes, source: object, text: str, reason: str = "key") -> None:
    """Refuse to decrypt."""
    secrets = (KEY, base64.b64encode(KEY), LINE.encode())
    run = lambda: encrypted.tree_of(blob, source)  # noqa: E731
    assert encrypted.reason_of(run, *secrets) == reason
    with pytest.raises(EncryptionError, match=text) as caught:
        run()
    assert LINE not in str(caught.value) and base64.b64encode(KEY).decode() not in str(caught.value)


def test_an_error_of_a_callback_is_the_callers(blob) -> None:
    """It is raised as it is."""

    def callback(key_id: str) -> bytes:
        raise PermissionError(key_id)

    with pytest.raises(PermissionError):
        encrypted.tree_of(blob, callback)


def test_a_key_is_not_shown_and_not_pickled() -> None:
    """Its id is."""
    key = find_key(KEY)
    assert repr(key) == f"<LocalKey {key.key_id.hex()}>"
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_a_load_without_cryptography_says_what_to_install(blob, tmp_path) -> None:
    """A process that does not have it opens the rest."""
    file = tmp_path / "blob"
    file.write_bytes(blob)
    script = (
        "import sys, runtime\n"
        "from runtime.trust.encryption.use import Use\n"
        "sys.modules['cryptography'] = None\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "assert not {'packer', 'pkcs11'} & set(sys.modules)\n"
        "with Use(bytes(32)):\n"
        "    try: runtime.deserialize_module_from_bytes(data)\n"
        "    except runtime.EncryptionError as error: print(error.reason, error)\n"
    )
    text = subprocess.check_output([sys.executable, "-P", "-c", script, file], text=True)
    assert text.startswith("package key: encryption needs the package cryptography: pip install")

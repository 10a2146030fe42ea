"""runtime.trust refuses every file that is not the signed one, each with a reason."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

import packer
from packer.trust.sign import sign_library
from runtime.error import VerifyError
from runtime.trust.verify import public_keys, verify_data, verify_file

from ...support import signing


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A library with its bundle; the private and the public key."""
    folder = tmp_path_factory.mktemp("signed")
    path = signing.library(folder / "model.so", output=packer.Output(metadata={"version": "1.2"}))
    key, public = signing.keys(folder)
    sign_library(path, key)
    verify_file(path, [public])  # cryptography is imported: the times below are of refusals
    return path, key, public


@pytest.fixture
def copy(signed: tuple[Path, Path, Path], tmp_path: Path) -> tuple[Path, Path, Path]:
    """The same, to change."""
    path = tmp_path / "model.so"
    for old, new in ((signed[0], path), (signing.sidecar(signed[0]), signing.sidecar(path))):
        new.write_bytes(old.read_bytes())
    return path, signed[1], signed[2]


def test_bad_bundles_are_refused(copy) -> None:
    """Each with a reason, within 100 ms (H1, H2, H5, H7)."""
    path, _, public = copy
    bundle = signing.sidecar(path)
    good = bundle.read_bytes()
    fields = json.loads(good)

    def changed(data: bytes) -> str:
        bundle.write_bytes(data)
        return signing.reason_of(path, public)

    assert changed(good[:-1]) == "bundle"
    assert changed(good[: len(good) // 2]) == "bundle"
    assert changed(b"") == "bundle"
    assert changed(b"\xff" + good) == "bundle"
    assert changed(good.replace(b"{", b'{"mediaType":"",', 1)) == "bundle"  # twice
    keys = b",".join(b'"%d":0' % i for i in range(90_000))
    assert changed(b"{" + keys + b',"89999":0}') == "bundle"
    assert changed(good + b" " * (1 << 20)) == "oversized"
    assert changed(good.replace(b"v0.3", b"v0.9")) == "algorithm"
    assert changed(good.replace(b"publicKey", b"certificate")) == "algorithm"
    assert changed(good.replace(b"dsseEnvelope", b"messageSignature")) == "algorithm"
    assert changed(good.replace(b"in-toto", b"in-tot0")) == "algorithm"
    envelope = fields["dsseEnvelope"]
    twice = {**envelope, "signatures": envelope["signatures"] * 2}
    assert changed(json.dumps({**fields, "dsseEnvelope": twice}).encode()) == "bundle"
    other = base64.b64encode(base64.b64decode(envelope["payload"]) + b" ").decode()
    wrong = {**envelope, "payload": other}
    assert changed(json.dumps({**fields, "dsseEnvelope": wrong}).encode()) == "signature"
    bundle.unlink()
    assert signing.reason_of(path, public) == "unsigned"
    assert signing.reason_of(path, public, bundle="none.json") == "unsigned"
    bundle.mkdir()
    assert signing.reason_of(path, public) == "io"


def test_every_flipped_byte_of_a_bundle_is_refused_or_harmless(copy) -> None:
    """One bit of every fifth byte: a bundle that verifies has the same statement."""
    path, _, public = copy
    good = signing.sidecar(path).read_bytes()
    expected = verify_file(path, [public])
    accepted = 0
    for index in range(0, len(good), 5):
        data = bytearray(good)
        data[index] ^= 1
        signing.sidecar(path).write_bytes(data)
        try:
            assert verify_file(path, [public]) == expected
            accepted += 1
        except VerifyError:
            pass
    unsigned = len('verificationMaterialpublicKeyhinttlogEntries[]""":') + 64
    assert accepted <= unsigned / 5 + 1


def test_bad_statements_are_refused(copy) -> None:
    """Signed with the right key, by OpenSSL, but wrong."""
    path, key, public = copy
    bundle = json.loads(signing.sidecar(path).read_text())
    statement = signing.payload_of(bundle)
    predicate, tree = statement["predicate"], statement["predicate"]["tree"]

    def signed_with(**fields: object) -> str:
        data = signing.signed_again(bundle, {**statement, **fields}, key)
        signing.sidecar(path).write_bytes(data)
        return signing.reason_of(path, public)

    def with_predicate(**fields: object) -> str:
        return signed_with(predicate={**predicate, **fields})

    assert signed_with(predicateType="https://other/v1") == "algorithm"
    assert signed_with(_type="https://in-toto.io/Statement/v2") == "algorithm"
    assert signed_with(subject=[]) == "statement"
    subject = {"name": "model.so", "digest": {"sha1": "0" * 40}}
    assert signed_with(subject=[subject]) == "algorithm"
    assert with_predicate(size=predicate["size"] + 1) == "size"  # H6
    assert with_predicate(size="1") == "statement"
    assert with_predicate(version=1) == "statement"
    assert with_predicate(tree={**tree, "root": "0" * 64}) == "statement"
    assert with_predicate(tree={**tree, "leaves": ""}) == "statement"
    assert with_predicate(tree={**tree, "pieceSize": 1}) == "algorithm"
    leaf = bytes(32)
    false = {**tree, "leaves": base64.b64encode(leaf).decode(), "root": leaf.hex()}
    assert with_predicate(tree=false) == "digest"
    entry = {**predicate["entries"][0], "sha256": "0" * 64}
    assert with_predicate(entries=[entry]) == "digest"
    assert with_predicate(entries=[{**entry, "offset": 1 << 40}]) == "statement"
    assert with_predicate(room={"offset": 0, "size": predicate["size"]}) == "statement"
    signing.sidecar(path).write_bytes(signing.signed_again(bundle, b'{"a":1,"a":1}', key))
    assert signing.reason_of(path, public) == "statement"


def test_other_files_and_keys_are_refused(copy, tmp_path) -> None:
    """Changed, cut, extended, renamed, or signed by another key (H2, H6)."""
    path, _, public = copy
    good = path.read_bytes()
    _, other = signing.keys(tmp_path, "other")
    _, third = signing.keys(tmp_path, "third", "ecdsa-p256")
    assert signing.reason_of(path, other) == "signer"
    assert signing.reason_of(path, other, third) == "signer"
    assert verify_file(path, [other, third, public]).name == "model.so"
    for data, reason in ((good + b"\0", "size"), (good[:-1], "size"), (b"", "size")):
        path.write_bytes(data)
        assert signing.reason_of(path, public) == reason
    changed = bytearray(good)
    changed[5000] ^= 1
    path.write_bytes(changed)
    assert signing.reason_of(path, public) == "digest"
    path.write_bytes(good)
    renamed = path.with_name("other.so")
    path.rename(renamed)
    signing.sidecar(path).rename(signing.sidecar(renamed))
    assert signing.reason_of(renamed, public) == "name"
    assert verify_file(renamed, [public], name="model.so").version == "1.2"


def test_flipped_bytes_of_the_file_are_refused(signed) -> None:
    """One bit of every 67th byte, in headers, code, tables and padding."""
    path, _, public = signed
    bundle, data = signing.sidecar(path).read_bytes(), bytearray(path.read_bytes())
    trusted = public_keys([public])
    verify_data(memoryview(data), bundle, trusted, where="model.so")
    for index in range(0, len(data), 67):
        data[index] ^= 1 << index % 8
        with pytest.raises(VerifyError) as caught:
            verify_data(memoryview(data), bundle, trusted, where="model.so")
        assert caught.value.reason == "digest"
        data[index] ^= 1 << index % 8


def test_signature_of_a_library_beside_another_is_refused(copy, tmp_path) -> None:
    """Both are signed; each bundle is of one file."""
    path, key, public = copy
    path.unlink()
    signing.library(path, output=packer.Output(metadata={"version": "9"}))
    assert signing.reason_of(path, public) in ("size", "digest")
    sign_library(path, key)
    assert verify_file(path, [public]).version == "9"


def test_both_signatures_must_hold(tmp_path) -> None:
    """One inside the file, one beside it (H2)."""
    path = signing.library(tmp_path / "model.so", output=packer.Output(signature_room=8192))
    key, public = signing.keys(tmp_path)
    other, other_public = signing.keys(tmp_path, "other")
    sign_library(path, key, embed=True)
    sign_library(path, other)
    assert signing.reason_of(path, public) == "signer"
    verify_file(path, [public, other_public])
    signing.sidecar(path).write_bytes(b"{}")
    assert signing.reason_of(path, public, other_public) == "algorithm"


@pytest.mark.parametrize(
    ("signed_version", "minimum", "holds"),
    [
        ("1.2", "1.2", True),
        ("1.2", "1.2.0", True),
        ("1.10", "1.9.9", True),
        ("1.2", "1.10", False),
        ("2.0.0-rc.1", "2.0.0", False),
        ("2.0.0-rc.10", "2.0.0-rc.9", True),
        ("2.0.0-alpha", "2.0.0-1", True),
        ("1.2+build.7", "1.2", True),
        ("1.2rc1", "1.0", False),
        ("latest", "0", False),
        (None, "0", False),
    ],
)
def test_older_versions_are_refused(signed_version, minimum, holds, tmp_path) -> None:
    """The order of Semantic Versioning; what has no place in it is refused (H3)."""
    path = signing.library(tmp_path / "model.so")
    key, public = signing.keys(tmp_path)
    sign_library(path, key, version=signed_version)
    if holds:
        verify_file(path, [public], minimum_version=minimum)
    else:
        assert signing.reason_of(path, public, minimum_version=minimum) == "version"


def test_import_of_the_runtime_imports_no_cryptography() -> None:
    """Not even for an unsigned file."""
    code = (
        "import sys, runtime.trust\n"
        "assert not {'cryptography', 'packer', 'pkcs11'} & set(sys.modules)\n"
        "import runtime\n"
        "sys.modules['cryptography'] = None\n"
        "try: runtime.trust.verify_file('a.so', [b'key'])\n"
        "except runtime.VerifyError as error: print(error.reason, error)\n"
    )
    text = subprocess.check_output([sys.executable, "-P", "-c", code], text=True)
    assert text.startswith("package key: keys and signatures need the package cryptography: pip")

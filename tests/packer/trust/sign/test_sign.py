"""Signed libraries: what OpenSSL and a second process accept, and each refusal."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from sigstore import dsse

import runtime
from packer import Build, Output
from packer.trust.sign import sign_library
from runtime.error import ExportError, VerifyError
from runtime.trust.bundle import signed_bytes
from runtime.trust.verify import verify_file

from ....support import signing
from ....support.command_line import Packer, done, refused
from ....support.sigstore_instance import IDENTITY, ISSUER, Instance

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A library with its bundle; the private and the public key."""
    folder = tmp_path_factory.mktemp("signed")
    path = signing.library(folder / "model.so", output=Output(metadata={"version": "1.2"}))
    key, public = signing.keys(folder)
    sign_library(path, key)
    verify_file(path, [public])  # cryptography is imported: the times below are of refusals
    return path, key, public


@pytest.mark.parametrize("algorithm", ["ed25519", "ecdsa-p256"])
def test_openssl_verifies_the_signature(algorithm, tmp_path) -> None:
    """The envelope is DSSE's, and the statement names the file's digest."""
    path = signing.library(tmp_path / "model.so")
    key, public = signing.keys(tmp_path, algorithm=algorithm)
    sign_library(path, key, version="3")
    bundle = json.loads(signing.sidecar(path).read_text())
    assert bundle["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    envelope = bundle["dsseEnvelope"]
    (signature,) = envelope["signatures"]
    raw, data = base64.b64decode(signature["sig"]), base64.b64decode(envelope["payload"])
    pae = signed_bytes(data)
    assert signing.openssl_verifies(public, raw, pae, algorithm)
    assert not signing.openssl_verifies(public, raw, pae + b" ", algorithm)
    statement = json.loads(data)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": "model.so", "digest": {"sha256": digest}}]
    assert statement["predicate"]["version"] == "3"
    for entry in statement["predicate"]["entries"]:
        part = path.read_bytes()[entry["offset"] :][: entry["size"]]
        assert entry["sha256"] == hashlib.sha256(part).hexdigest()
    assert [e["typeKey"] for e in statement["predicate"]["entries"]][:2] == ["_lib", "opencl"]


def test_ed25519_signatures_are_the_same_each_time(signed, tmp_path) -> None:
    """Nothing in a bundle depends on time or chance."""
    path, key, _ = signed
    before = signing.sidecar(path).read_bytes()
    sign_library(path, key)
    assert signing.sidecar(path).read_bytes() == before


def test_leaves_are_those_of_rfc_9162(tmp_path) -> None:
    """Three pieces: the odd one moves up unchanged."""
    path = signing.library(tmp_path / "model.so", output=Output(signature_room=(2 << 20) + 5))
    key, _ = signing.keys(tmp_path)
    sign_library(path, key)
    tree = signing.payload_of(json.loads(signing.sidecar(path).read_text()))["predicate"]["tree"]
    data = path.read_bytes()
    a, b, c = (hashlib.sha256(b"\0" + data[i << 20 : (i + 1) << 20]).digest() for i in range(3))
    assert base64.b64decode(tree["leaves"]) == a + b + c
    left = hashlib.sha256(b"\1" + a + b).digest()
    assert tree["root"] == hashlib.sha256(b"\1" + left + c).hexdigest()


def test_a_statement_with_the_digest_of_another_file_is_refused(tmp_path) -> None:
    """Its leaves match the file, so no piece differs."""
    path = signing.library(tmp_path / "model.so")
    key, _ = signing.keys(tmp_path)
    statement = sign_library(path, key).statement._replace(sha256="0" * 64)
    with pytest.raises(VerifyError, match="expected 0{64}, as signed: the file was changed"):
        statement.verify_bytes(memoryview(path.read_bytes()), "model.so")


def test_commands_sign_and_verify(packer: Packer, tmp_path) -> None:
    """A pair of keys, a bundle, and the exit codes 0, 1 and 2."""
    signing.library(tmp_path / "model.so", output=Output(metadata={"version": "1.2"}))
    done(packer("keygen", "acme"))
    assert (tmp_path / "acme.key").stat().st_mode & 0o777 == 0o600
    assert "version 1.2" in done(packer("sign", "model.so", "--key", "acme.key"))
    assert "version 1.2" in done(packer("verify", "model.so", "--key", "acme.pub"))
    answer = json.loads(done(packer("verify", "model.so", "--key", "acme.pub", "--json")))
    assert (answer["ok"], answer["name"], answer["version"]) == (True, "model.so", "1.2")
    newer = ["--minimum-version", "1.10"]
    text = refused(packer("verify", "model.so", "--key", "acme.pub", *newer))
    assert "version 1.2, expected 1.10 or newer" in text
    assert "one public key" in refused(packer("verify", "model.so"), 2)
    words = ["verify", "model.so", "--key", "acme.pub", "--minimum-version", "new"]
    assert "numbers separated by dots" in refused(packer(*words), 2)
    assert "never replaced" in refused(packer("keygen", "acme"))


def test_verify_runs_nothing(packer: Packer, tmp_path) -> None:
    """A constructor would leave a mark."""
    mark = tmp_path / "mark"
    code = f'__attribute__((constructor)) static void f(void) {{ fopen("{mark}", "w"); }}'
    (tmp_path / "bad.c").write_text(f"#include <stdio.h>\n{code}\nint g(void) {{ return 1; }}\n")
    packer("export", "bad.so", "bad.c")
    done(packer("keygen", "acme"))
    done(packer("sign", "bad.so", "--key", "acme.key"))
    done(packer("verify", "bad.so", "--key", "acme.pub"))
    assert not mark.exists()


@pytest.mark.parametrize("embed", ["segment", "llvm", "c"])
def test_one_file_has_its_signature(embed, packer: Packer, tmp_path) -> None:
    """It loads as before, a second signature replaces the first, and strip ends it."""
    path = signing.library(
        tmp_path / "model.so",
        output=Output(signature_room=8192),
        build=Build(embed=embed),
    )
    done(packer("keygen", "acme"))
    for version in ("1", "2"):
        words = ["--key", "acme.key", "--embed", "--version", version]
        done(packer("sign", "model.so", *words))
        assert f"version {version}" in done(packer("verify", "model.so", "--key", "acme.pub"))
    assert not signing.sidecar(path).exists()
    code = "import runtime; print(runtime.load('model.so')['add'](40, 2))"
    words = [sys.executable, "-P", "-c", code]
    assert subprocess.check_output(words, cwd=tmp_path, text=True) == "42\n"
    data = path.read_bytes()
    place = data.index(b'"sig":"') + 10
    path.write_bytes(data[:place] + (b"A" if data[place] != 65 else b"B") + data[place + 1 :])
    assert signing.reason_of(path, tmp_path / "acme.pub") == "signature"
    path.write_bytes(data)
    subprocess.run(["strip", path], check=True)
    assert signing.reason_of(path, tmp_path / "acme.pub") in ("size", "digest", "statement")


@pytest.mark.parametrize("embed", [False, True])
def test_another_tool_signs_the_statement(embed: bool, packer: Packer, tmp_path) -> None:
    """With a certificate of Sigstore, as cosign does; beside the file or inside it."""
    instance = Instance(tmp_path / "instance")
    path = signing.library(tmp_path / "model.so", output=Output(signature_room=16384))
    words = ["--identity", IDENTITY, "--issuer", ISSUER, "--trusted-root", instance.trusted_root]
    statement = done(packer("sign", "model.so", "--statement", "--version", "1.2"))
    assert dsse.Statement(statement.encode())  # sigstore's own reader
    (tmp_path / "made.json").write_text(json.dumps(instance.bundle(statement.encode())))
    options = ["--embed"] if embed else []
    assert "version 1.2" in done(packer("sign", "model.so", "--bundle", "made.json", *options))
    assert signing.sidecar(path).exists() != embed
    assert "version 1.2" in done(packer("verify", "model.so", *words))
    rule = runtime.Trust.sigstore(IDENTITY, ISSUER, trusted_root=instance.trusted_root)
    assert runtime.load(path, trust=rule)["add"](40, 2) == 42
    foreign = ["--identity", "mallory", *words[2:]]
    assert f"signed by '{IDENTITY}', expected 'mallory'" in refused(
        packer("verify", "model.so", *foreign)
    )
    assert "verified by certificate" in refused(
        packer("verify", "model.so", "--key", signing.keys(tmp_path)[1])
    )
    (tmp_path / "made.json").write_text(json.dumps(instance.bundle(statement[:-3].encode())))
    assert "not JSON" in refused(packer("sign", "model.so", "--bundle", "made.json"))
    other = statement.replace('"name":"model.so"', '"name":"other.so"')
    (tmp_path / "made.json").write_text(json.dumps(instance.bundle(other.encode())))
    text = refused(packer("sign", "model.so", "--bundle", "made.json"))
    assert "the bundle is of another file; sign what `packer sign --statement` prints" in text


def test_wrong_usage_of_other_signers_is_refused(packer: Packer, tmp_path) -> None:
    """One kind of signer at a time, and an identity is of an issuer."""
    rows = [
        (["verify", "a.so", "--key", "a.pub", "--identity", "me"], "without --identity"),
        (["verify", "a.so", "--identity", "me"], "--identity and --issuer: expected both"),
        (["sign", "a.so"], "one of the arguments --key --statement --bundle is required"),
        (["sign", "a.so", "--key", "a", "--statement"], "not allowed with argument"),
        (["sign", "a.so", "--statement", "--embed"], "argument --embed: expected it with --key"),
        (["sign", "a.so", "--bundle", "b", "--version", "1"], "argument --version: expected it"),
    ]
    for words, text in rows:
        assert text in refused(packer(*words), 2)


def test_bytes_after_an_embedded_bundle_are_refused(tmp_path) -> None:
    """No signature covers them."""
    path = signing.library(tmp_path / "model.so", output=Output(signature_room=8192))
    key, public = signing.keys(tmp_path)
    room = sign_library(path, key, embed=True).statement.room
    assert room is not None
    data = bytearray(path.read_bytes())
    data[sum(room) - 1] = 1
    path.write_bytes(data)
    assert signing.reason_of(path, public) == "bundle"


def test_room_that_is_too_small_or_missing_is_refused(signed, tmp_path) -> None:
    """The message has the option that helps."""
    path = signing.library(tmp_path / "model.so", output=Output(signature_room=64))
    with pytest.raises(
        ExportError, match="expected at most 64; export it with --signature-room 4096"
    ):
        sign_library(path, signed[1], embed=True)
    with pytest.raises(ExportError, match="no room for a signature"):
        sign_library(signed[0], signed[1], embed=True)
    with pytest.raises(ExportError, match="shared libraries, found .o"):
        signing.library(tmp_path / "model.o", output=Output(signature_room=64))


def test_room_is_the_only_change(tmp_path) -> None:
    """Without the option an export has the bytes that it had."""
    plain = signing.library(tmp_path / "a.so").read_bytes()
    assert signing.library(tmp_path / "b.so", output=Output(signature_room=0)).read_bytes() == plain
    assert len(
        signing.library(tmp_path / "c.so", output=Output(signature_room=64)).read_bytes()
    ) > len(plain)


def test_damaged_library_is_not_signed(signed, tmp_path) -> None:
    """Its blob would be refused at a load."""
    path = tmp_path / "model.so"
    data = signed[0].read_bytes().replace(b"_import_tree", b"_import_tre3")
    path.write_bytes(data)
    with pytest.raises(ExportError, match="is not signed: "):
        sign_library(path, signed[1])
    path.write_bytes(b"text")
    with pytest.raises(runtime.LibraryLoadError):
        sign_library(path, signed[1])

"""Signers by a certificate: a private instance of Sigstore, and no network."""

from __future__ import annotations

import copy
import datetime
import json
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import packer
import runtime
from packer.inspect import open_library
from packer.trust.sign import sign_library, statement_of
from runtime import Trust
from runtime.error import VerifyError
from runtime.trust.statement import dump_statement
from runtime.trust.verify import Identity, verify_file

from ...support import signing
from ...support.sigstore_instance import IDENTITY, ISSUER, MINUTE, Instance, Signer, base64

Fields = dict[str, Any]


class Scene(NamedTuple):
    """An instance, a library with its statement, a signer, and the rule that accepts both."""

    instance: Instance
    path: Path
    payload: bytes
    signer: Signer
    rule: Trust

    def write(self, bundle: Fields | bytes) -> None:
        """Put a bundle beside the library."""
        data = bundle if isinstance(bundle, bytes) else json.dumps(bundle).encode()
        signing.sidecar(self.path).write_bytes(data)

    def reason(self, bundle: Fields | bytes, rule: Trust | None = None) -> str:
        """Return the reason of the refusal of a load, within 100 ms."""
        self.write(bundle)
        return refusal(lambda: runtime.load(self.path, trust=rule or self.rule))[0]


def refusal(load: Callable[[], object]) -> tuple[str, str]:
    """Return the reason and the message of a refusal, which takes at most 100 ms."""
    started = time.process_time()
    with pytest.raises(VerifyError) as caught:
        load()
    assert time.process_time() - started < 0.1
    return caught.value.reason, str(caught.value)


def statement(path: Path, version: str | None = "1.2") -> bytes:
    """The statement over a library, as `packer sign --statement` writes it."""
    with_room = None
    return dump_statement(statement_of(open_library(str(path)), path.name, version, with_room))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Make the scene once."""
    folder = tmp_path_factory.mktemp("sigstore")
    instance = Instance(folder / "instance")
    path = signing.library(folder / "model.so")
    rule = Trust.sigstore(IDENTITY, ISSUER, trusted_root=instance.trusted_root)
    return Scene(instance, path, statement(path), instance.signer(), rule)


@pytest.fixture
def scene(made: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """The same, with a copy of the library, and without a policy at the end."""
    monkeypatch.delenv("DSO_TRUST", raising=False)
    path = tmp_path / "model.so"
    path.write_bytes(made.path.read_bytes())
    yield made._replace(path=path)
    runtime.set_trust_policy(None)


@pytest.mark.parametrize("rekor", [1, 2])
def test_an_identity_decides(rekor: int, scene: Scene) -> None:
    """Timed by the log, or by a timestamp authority."""
    scene.write(scene.instance.bundle(scene.payload, scene.signer, rekor=rekor))
    assert runtime.load(scene.path, trust=scene.rule)["add"](40, 2) == 42
    signer = Identity(IDENTITY, ISSUER, trusted_root=scene.instance.trusted_root)
    assert verify_file(scene.path, signer).version == "1.2"
    for rule in (("https://forge.test/other", ISSUER), (IDENTITY, "https://other.test")):
        foreign = Trust.sigstore(*rule, trusted_root=scene.instance.trusted_root)
        with pytest.raises(VerifyError):
            runtime.load(scene.path, trust=foreign)


def test_a_foreign_identity_is_refused(scene: Scene) -> None:
    """The message names both (H2)."""
    foreign = scene.instance.signer("mallory@forge.test")
    scene.write(scene.instance.bundle(scene.payload, foreign))
    reason, text = refusal(lambda: runtime.load(scene.path, trust=scene.rule))
    assert reason == "identity"
    assert f"signed by 'mallory@forge.test', expected {IDENTITY!r}" in text


def test_another_issuer_is_refused(scene: Scene) -> None:
    """Who could vouch for the same identity (H2)."""
    other = scene.instance.signer(issuer="https://evil.test")
    scene.write(scene.instance.bundle(scene.payload, other))
    reason, text = refusal(lambda: runtime.load(scene.path, trust=scene.rule))
    assert reason == "issuer"
    assert f"expected {ISSUER!r}" in text


@pytest.mark.parametrize("minutes", [-11, 11])
def test_an_expired_identity_is_refused(minutes: int, scene: Scene) -> None:
    """The certificate was not valid when the log took the signature (H2)."""
    at = scene.instance.now + minutes * MINUTE
    scene.write(scene.instance.bundle(scene.payload, scene.signer, at=at))
    reason, text = refusal(lambda: runtime.load(scene.path, trust=scene.rule))
    assert reason == "expired"
    assert f"signed at {at:%Y-%m-%d %H:%M:%S} UTC" in text


def test_an_expired_certificate_verifies_what_it_signed_in_time(
    scene: Scene, tmp_path: Path
) -> None:
    """A certificate lives for minutes, and a signature for years: this one ended an hour ago."""
    past = Instance(tmp_path / "past")
    past.now -= datetime.timedelta(hours=1)
    scene.write(past.bundle(scene.payload))
    rule = Trust.sigstore(IDENTITY, ISSUER, trusted_root=past.trusted_root)
    assert runtime.load(scene.path, trust=rule)["add"](1, 2) == 3


def test_another_instance_is_refused(scene: Scene, tmp_path: Path) -> None:
    """Its authority may issue any identity; so may the public one, whose root is the default."""
    scene.write(Instance(tmp_path / "other").bundle(scene.payload))
    assert refusal(lambda: runtime.load(scene.path, trust=scene.rule))[0] == "certificate"
    scene.write(scene.instance.bundle(scene.payload, scene.signer))
    reason, text = refusal(lambda: runtime.load(scene.path, trust=Trust.sigstore(IDENTITY, ISSUER)))
    assert (reason, "the trusted root, sigstore's own" in text) == ("certificate", True)


def entry_of(bundle: Fields) -> Fields:
    """The entry of the log in a bundle."""
    entry: Fields = bundle["verificationMaterial"]["tlogEntries"][0]
    return entry


def flipped(text: str) -> str:
    """Change one bit of base64."""
    data = bytearray(b64decode(text))
    data[len(data) // 2] ^= 1
    return base64(bytes(data))


def test_a_log_that_does_not_prove_its_entry_is_refused(scene: Scene) -> None:
    """A changed inclusion proof, checkpoint or promise, and the signature of another log."""
    good = scene.instance.bundle(scene.payload, scene.signer)

    def changed(change: Callable[[Fields], None]) -> str:
        bundle = copy.deepcopy(good)
        change(entry_of(bundle))
        return scene.reason(bundle)

    def change_proof(entry: Fields) -> None:
        hashes = entry["inclusionProof"]["hashes"]
        hashes[0] = flipped(hashes[0])

    def change_place(entry: Fields) -> None:
        entry["inclusionProof"]["logIndex"] = "0"

    def change_root(entry: Fields) -> None:
        entry["inclusionProof"]["rootHash"] = flipped(entry["inclusionProof"]["rootHash"])

    def change_checkpoint(entry: Fields) -> None:
        checkpoint = entry["inclusionProof"]["checkpoint"]
        start, mark, signature = checkpoint["envelope"].rpartition(" ")
        checkpoint["envelope"] = f"{start}{mark}{flipped(signature.strip())}\n"

    def change_promise(entry: Fields) -> None:
        promise = entry["inclusionPromise"]
        promise["signedEntryTimestamp"] = flipped(promise["signedEntryTimestamp"])

    def change_time(entry: Fields) -> None:
        entry["integratedTime"] = str(int(entry["integratedTime"]) + 1)

    changes = (change_proof, change_place, change_root, change_checkpoint, change_promise)
    for change in (*changes, change_time):
        assert changed(change) == "log", change.__name__


def test_the_entry_of_another_signature_is_refused(scene: Scene) -> None:
    """Of the same signer, in the same log, and proved."""
    for rekor in (1, 2):
        good = scene.instance.bundle(scene.payload, scene.signer, rekor=rekor)
        other = scene.instance.bundle(scene.payload + b" ", scene.signer, rekor=rekor)
        good["verificationMaterial"]["tlogEntries"] = other["verificationMaterial"]["tlogEntries"]
        assert scene.reason(good) == "entry"


def test_a_changed_statement_or_signature_is_refused(scene: Scene) -> None:
    """The certificate's key did not sign it."""
    for place in ("payload", "sig"):
        bundle = scene.instance.bundle(scene.payload, scene.signer)
        envelope = bundle["dsseEnvelope"]
        if place == "sig":
            other = scene.instance.bundle(scene.payload, scene.instance.signer())
            envelope["signatures"] = other["dsseEnvelope"]["signatures"]
        else:
            envelope["payload"] = base64(scene.payload.replace(b'"1.2"', b'"9.9"'))
        assert scene.reason(bundle) == "signature"


def test_a_signature_without_a_trusted_time_is_refused(scene: Scene, tmp_path: Path) -> None:
    """A timestamp of another authority, or of another signature, or none."""
    good = scene.instance.bundle(scene.payload, scene.signer, rekor=2)
    times = good["verificationMaterial"]["timestampVerificationData"]
    foreign = Instance(tmp_path / "foreign").bundle(scene.payload, scene.signer, rekor=2)
    other = scene.instance.bundle(scene.payload, scene.signer, rekor=2)
    for bundle in (foreign, other):
        given = bundle["verificationMaterial"]["timestampVerificationData"]
        times["rfc3161Timestamps"] = given["rfc3161Timestamps"]
        assert scene.reason(good) == "time"
    times["rfc3161Timestamps"] = []
    assert scene.reason(good) == "bundle"


def test_bad_bundles_are_refused(scene: Scene) -> None:
    """Cut, doubled, oversized, of another kind, and by a key; each by a reason (H1, H2, H5, H7)."""
    good = scene.instance.bundle(scene.payload, scene.signer)
    data = json.dumps(good).encode()
    assert scene.reason(data[:-1]) == "bundle"
    assert scene.reason(b"") == "bundle"
    assert scene.reason(b'{"mediaType":"",' + data[1:]) == "bundle"  # twice
    assert scene.reason(data + b" " * (1 << 20)) == "oversized"
    assert scene.reason(data.replace(b"v0.3", b"v0.2")) == "algorithm"
    assert scene.reason(data.replace(b'"0.0.1"', b'"0.0.9"')) == "algorithm"
    assert scene.reason(data.replace(b'"kind": "dsse"', b'"kind": "intoto"')) == "algorithm"
    certificate = good["verificationMaterial"]["certificate"]
    assert scene.reason(data.replace(certificate["rawBytes"].encode(), b"AAAA")) == "bundle"
    without = {**good, "verificationMaterial": {**good["verificationMaterial"], "tlogEntries": []}}
    assert scene.reason(without) == "bundle"
    signing.sidecar(scene.path).unlink()
    key, public = signing.keys(scene.path.parent)
    assert refusal(lambda: runtime.load(scene.path, trust=scene.rule))[0] == "unsigned"
    sign_library(scene.path, key)
    assert refusal(lambda: runtime.load(scene.path, trust=scene.rule))[0] == "algorithm"
    assert scene.reason(data, Trust.keys(public)) == "algorithm"


def test_what_the_right_identity_signed_must_be_this_file(scene: Scene) -> None:
    """Another file, name, version or predicate (H2, H3, H6)."""

    def reason(payload: bytes, rule: Trust | None = None) -> str:
        return scene.reason(scene.instance.bundle(payload, scene.signer), rule)

    root = scene.instance.trusted_root
    newer = Trust.sigstore(IDENTITY, ISSUER, trusted_root=root, minimum_version="1.3")
    assert reason(scene.payload, newer) == "version"
    assert reason(scene.payload.replace(b"model.so", b"other.so")) == "name"
    assert reason(scene.payload.replace(b"dso-packer", b"elsewhere")) == "algorithm"
    assert reason(scene.payload[:-1]) == "statement"
    other = signing.library(
        scene.path.with_name("other.so"), output=packer.Output(metadata={"other": True})
    )
    payload = statement(other).replace(b"other.so", b"model.so")
    assert reason(payload) in ("size", "digest")
    data = bytearray(scene.path.read_bytes())
    data[len(data) // 2] ^= 1
    scene.path.write_bytes(data)
    assert reason(scene.payload) == "digest"


def test_every_flipped_byte_of_a_bundle_is_refused_or_harmless(scene: Scene) -> None:
    """One bit of every 60th byte: what verifies has the same statement."""
    good = json.dumps(scene.instance.bundle(scene.payload, scene.signer)).encode()
    scene.write(good)
    signer = Identity(IDENTITY, ISSUER, trusted_root=scene.instance.trusted_root)
    expected = verify_file(scene.path, signer)
    for index in range(0, len(good), 60):
        data = bytearray(good)
        data[index] ^= 1
        scene.write(bytes(data))
        try:
            assert verify_file(scene.path, signer) == expected
        except VerifyError as error:
            assert error.reason
            assert len(str(error)) < 500


# ---- The policy of a process, and the package


def test_a_policy_names_identities(scene: Scene) -> None:
    """A table in the row of a folder; the trusted root is relative to the policy."""
    scene.write(scene.instance.bundle(scene.payload, scene.signer))
    folder = scene.path.parent
    (folder / "root.json").write_bytes(scene.instance.trusted_root.read_bytes())
    policy = folder / "trust.toml"

    def set_policy(identity: str, version: str) -> None:
        row = f'{{identity = "{identity}", issuer = "{ISSUER}", trusted_root = "root.json"}}'
        rule = f'sigstore = {row}\nminimum_version = "{version}"\n'
        policy.write_text(f'[[folder]]\npath = "."\n{rule}')
        runtime.set_trust_policy(policy)

    set_policy(IDENTITY, "1")
    assert runtime.load(scene.path)["add"](1, 2) == 3
    set_policy(IDENTITY, "2")
    assert refusal(lambda: runtime.load(scene.path))[0] == "version"
    set_policy("mallory@forge.test", "1")
    assert refusal(lambda: runtime.load(scene.path))[0] == "identity"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("true", "expected a table of identity and issuer, found True"),
        ('{identity = "a"}', "sigstore: issuer, expected a text, found ''"),
        ('{identity = "a", issuer = 1}', "sigstore: issuer, expected a text, found 1"),
        ('{identity = "a", issuer = "b", root = "c"}', "unknown key 'root'"),
        (
            '{identity = "a", issuer = "b", trusted_root = "none.json"}',
            "none.json: the trusted root",
        ),
    ],
)
def test_a_malformed_row_refuses_everything(row: str, message: str, scene: Scene) -> None:
    """As every malformed policy does."""
    policy = scene.path.with_name("trust.toml")
    policy.write_text(f'[[folder]]\npath = "."\nsigstore = {row}\n')
    with pytest.raises(VerifyError, match=message) as caught:
        runtime.set_trust_policy(policy)
    assert caught.value.reason == "policy"
    assert "every file is refused" in refusal(lambda: runtime.load(scene.path))[1]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"mediaType": "x"}', "null"])
def test_a_malformed_trusted_root_is_refused(text: str, tmp_path: Path) -> None:
    """When the rule is made."""
    root = tmp_path / "root.json"
    root.write_text(text)
    with pytest.raises(VerifyError, match="expected a trusted root of Sigstore in JSON") as caught:
        Trust.sigstore(IDENTITY, ISSUER, trusted_root=root)
    assert caught.value.reason == "root"
    with pytest.raises(ValueError, match="identity, expected a text, found ''"):
        Trust.sigstore("", ISSUER)


NO_PACKAGE = """
import sys
sys.modules["sigstore"] = None
import runtime
try: runtime.Trust.sigstore("a", "b")
except runtime.VerifyError as error: print(error.reason, error)
"""
NO_NETWORK = """
import socket, sys
def refuse(*args, **options): raise AssertionError("the network is asked")
socket.socket.connect = socket.getaddrinfo = refuse
import runtime
identity, issuer, root, path = sys.argv[1:]
runtime.Trust.sigstore(identity, issuer)
rule = runtime.Trust.sigstore(identity, issuer, trusted_root=root)
print(runtime.load(path, trust=rule)["add"](40, 2))
"""


def test_the_package_is_imported_late_and_asks_no_network(scene: Scene) -> None:
    """Without it the message says how to get it."""
    scene.write(scene.instance.bundle(scene.payload, scene.signer))

    def printed(code: str, *words: object) -> str:
        command = [sys.executable, "-P", "-c", code, *map(str, words)]
        return subprocess.check_output(command, text=True)

    assert printed(NO_PACKAGE).startswith("package 'a': certificates need the package sigstore")
    words = (IDENTITY, ISSUER, scene.instance.trusted_root, scene.path)
    assert printed(NO_NETWORK, *words) == "42\n"

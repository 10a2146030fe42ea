"""Targets of signatures: bundles, statements that are signed, public keys, and policies."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from packer.trust.sign import sign_library
from packer.trust.sign.keys import create_keys, read_private_key
from runtime.trust.bundle import MEDIA_TYPE, PAYLOAD_TYPE, signed_bytes
from runtime.trust.policy import read_policy
from runtime.trust.statement import Statement, dump_statement
from runtime.trust.verify import SUFFIX, Identity, public_keys, read_public_key, verify_data

from ..support.signing import library
from ..support.sigstore_instance import IDENTITY, ISSUER, Instance, base64
from .edited_inputs import Seed, binary, json_texts, lines
from .judge import Target
from .reading import in_file, of_seeds


def trust_targets(folder: Path) -> list[Target]:
    """A signed library is read with each input."""
    home = folder / "trust"
    home.mkdir()
    path = library(home / "model.so")
    key, public = create_keys(home / "acme")
    statement = sign_library(path, key).statement
    data, trusted = memoryview(path.read_bytes()), public_keys([public])
    sign = read_private_key(key, lambda _: None).sign

    def verify(bundle: bytes) -> None:
        found = verify_data(data, bundle, trusted, where="model.so")
        assert found == statement
        found.verify_parts(data, "model.so")

    def verify_statement(payload: bytes) -> None:
        bundle = _bundle(payload, sign(signed_bytes(payload)))
        found = verify_data(data, bundle, trusted, where="model.so", minimum_version="0")
        found.verify_parts(data, "model.so")

    bundle = Path(f"{path}{SUFFIX}").read_bytes()
    payload = dump_statement(statement._replace(version="1.2"))
    return [
        of_seeds("bundle", [Seed(bundle)], verify),
        of_seeds("statement", [Seed(payload)], verify_statement),
        of_seeds("key", [Seed(public.read_bytes())], read_public_key),
        certificate_target(home, data, statement),
        policy_target(home),
    ]


# Of a bundle with a certificate: where base64 is, of bytes that have a format.
ENTRY = ("verificationMaterial", "tlogEntries", 0)
TIMES = ("verificationMaterial", "timestampVerificationData")
ENCODED = (
    ("verificationMaterial", "certificate", "rawBytes"),
    (*ENTRY, "canonicalizedBody"),
    (
        "verificationMaterial",
        "timestampVerificationData",
        "rfc3161Timestamps",
        0,
        "signedTimestamp",
    ),
)


def certificate_target(home: Path, data: memoryview, statement: Statement) -> Target:
    """Bundles with certificates: edited JSON, and edited certificates, log entries and times."""
    instance = Instance(home / "instance")
    signer, payload = instance.signer(), dump_statement(statement)
    bundles = [instance.bundle(payload, signer, rekor=version) for version in (1, 2)]
    identity = Identity(IDENTITY, ISSUER, trusted_root=instance.trusted_root)

    def verify(bundle: bytes) -> None:
        found = verify_data(data, bundle, identity, where="model.so")
        assert found == statement
        found.verify_parts(data, "model.so")

    timed = bundles[1]
    encoded = [
        binary([Seed(b64decode(_at(timed, place)))]).map(partial(_with, timed, place))
        for place in ENCODED
    ]
    valid = [json.dumps(bundle).encode() for bundle in bundles]
    return Target("certificate", st.one_of(json_texts(bundles), *encoded), valid, verify)


def _at(fields: Any, place: Sequence[str | int]) -> Any:
    for key in place:
        fields = fields[key]
    return fields


def _with(fields: Any, place: Sequence[str | int], data: bytes) -> bytes:
    """Write a bundle with other bytes at one place."""
    changed = json.loads(json.dumps(fields))
    _at(changed, place[:-1])[place[-1]] = base64(data)
    return json.dumps(changed).encode()


POLICY = """default = "anyone"
[[folder]]
path = "."
keys = ["acme.pub"]
minimum_version = "1.2"
[[folder]]
path = "/opt"
sigstore = {identity = "a", issuer = "b", trusted_root = "instance/trusted_root.json"}
[bytes]
sha256 = ["HEX"]
""".replace("HEX", "0" * 64)
RULES = (
    *('"anyone"', '"refuse"', '"."', '""', '"\\u0000"', "true", "1", "[]", "{}", '["acme.pub"]'),
    *('["none.pub"]', "[1]", '{identity = "a"}', '{identity = 1, issuer = "b"}', "9" * 5000),
    *("[" * 2000, "2020-01-01", "\ud800", '["env:NONE"]', '"/dev/zero"', '["/dev/zero"]'),
)


def policy_target(home: Path) -> Target:
    """Policies, which name a key and a trusted root in their folder."""

    def read(path: Path) -> None:
        policy = read_policy(str(path))
        for file in ("/opt/a", str(home / "a"), "/a"):
            policy.of_file(file)

    return Target(
        "policy", lines([POLICY], RULES), [POLICY.encode()], in_file(home / "t.toml", read)
    )


def _bundle(payload: bytes, signature: bytes) -> bytes:
    """Write a bundle by hand."""
    from base64 import b64encode

    envelope = {
        "payload": b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"sig": b64encode(signature).decode()}],
    }
    material = {"publicKey": {"hint": ""}}
    fields = {"mediaType": MEDIA_TYPE, "verificationMaterial": material, "dsseEnvelope": envelope}
    return json.dumps(fields).encode()

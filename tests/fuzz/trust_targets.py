"""Targets of signatures: bundles, statements that are signed, and public keys."""

from __future__ import annotations

import json
from pathlib import Path

from packer.sign import sign_library
from packer.sign.keys import create_keys, read_private_key
from runtime.trust import SUFFIX, public_keys, read_public_key, verify_data
from runtime.trust.bundle import MEDIA_TYPE, PAYLOAD_TYPE, signed_bytes
from runtime.trust.statement import dump_statement

from ..support.signing import library
from .edited_inputs import Seed
from .judge import Target
from .reading import of_seeds


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
    ]


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

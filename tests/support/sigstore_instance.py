"""A private instance of Sigstore: authorities, and logs; no network."""

from __future__ import annotations

import datetime
import hashlib
import json
import struct
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from . import needs

IDENTITY, ISSUER = "https://forge.test/acme/release.yml@main", "https://issuer.test"
ISSUER_V1, ISSUER_V2 = "1.3.6.1.4.1.57264.1.1", "1.3.6.1.4.1.57264.1.8"
TIMESTAMPS = "1.3.6.1.4.1.11129.2.4.2"  # of a log of certificates (RFC 6962)
MINUTE = datetime.timedelta(minutes=1)
BEGIN = "2020-01-01T00:00:00Z"
P256 = "PKIX_ECDSA_P256_SHA_256"
OPENSSL_TSA = """
[tsa]
default_tsa = t
[t]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
"""


class Key:
    """A pair of keys on P-256."""

    def __init__(self) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        self.der = self.private.public_key().public_bytes(serialization.Encoding.DER, form)
        self.id = hashlib.sha256(self.der).digest()

    def sign(self, data: bytes) -> bytes:
        """Make a signature."""
        return self.private.sign(data, ec.ECDSA(hashes.SHA256()))

    def log(self, url: str) -> dict[str, Any]:
        """Describe the log that has this key."""
        key = {
            "rawBytes": base64(self.der),
            "keyDetails": P256,
            "validFor": {"start": "2020-01-01T00:00:00Z"},
        }
        log_id = {"keyId": base64(self.id)}
        return {"baseUrl": url, "hashAlgorithm": "SHA2_256", "publicKey": key, "logId": log_id}


class Signer(NamedTuple):
    """A key and its certificate, which lives from ten minutes ago to in ten minutes."""

    key: Key
    certificate: x509.Certificate


class Instance:
    """An authority of certificates, one of time, a log of certificates, and one of signatures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        self.root, self.authority, self.time = Key(), Key(), Key()
        self.certificate_log, self.signature_log = Key(), Key()
        self.root_certificate = self._issue(self.root, self.root, "root", "root", ca=True)
        self.authority_certificate = self._issue(self.authority, self.root, "ca", "root", ca=True)
        self.time_certificate = self._issue(self.time, self.root, "time", "root", ca=False)
        self.entries = [b"an entry of others", b"another", b"a third"]
        self.trusted_root = folder / "trusted_root.json"
        self.trusted_root.write_text(json.dumps(self._trusted_root()))

    def signer(self, identity: str = IDENTITY, issuer: str = ISSUER) -> Signer:
        """Issue a certificate for a new key."""
        key = Key()
        der = issuer.encode()
        extensions = [
            (x509.KeyUsage(True, *[False] * 8), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False),
            (x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity)]), True),
            (x509.UnrecognizedExtension(x509.ObjectIdentifier(ISSUER_V1), der), False),
            (
                x509.UnrecognizedExtension(
                    x509.ObjectIdentifier(ISSUER_V2), bytes([0x0C, len(der)]) + der
                ),
                False,
            ),
        ]
        builder = self._builder(key, self.authority, "", "ca", extensions)
        unlogged = builder.sign(self.authority.private, hashes.SHA256())
        stamp = x509.UnrecognizedExtension(
            x509.ObjectIdentifier(TIMESTAMPS), self._certificate_timestamp(unlogged)
        )
        builder = builder.add_extension(stamp, False)
        return Signer(key, builder.sign(self.authority.private, hashes.SHA256()))

    def bundle(
        self,
        payload: bytes,
        signer: Signer | None = None,
        *,
        at: datetime.datetime | None = None,
        rekor: int = 1,
    ) -> dict[str, Any]:
        """Sign a statement: logged and timed by a log of the first or of the second version."""
        key, certificate = signer or self.signer()
        kind = "application/vnd.in-toto+json"
        pae = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
        signature = key.sign(pae)
        if rekor == 1:
            entry = self._first_entry(payload, signature, certificate, at or self.now)
            times = []
        else:
            entry = self._second_entry(pae, signature, certificate)
            times = [{"signedTimestamp": base64(self._timestamp(signature))}]
        material = {
            "certificate": {"rawBytes": base64(in_der(certificate))},
            "tlogEntries": [entry],
            "timestampVerificationData": {"rfc3161Timestamps": times},
        }
        envelope = {
            "payload": base64(payload),
            "payloadType": kind,
            "signatures": [{"sig": base64(signature)}],
        }
        media = "application/vnd.dev.sigstore.bundle.v0.3+json"
        return {"mediaType": media, "verificationMaterial": material, "dsseEnvelope": envelope}

    # ---- Certificates

    def _builder(
        self, key: Key, issuer: Key, name: str, by: str, extensions: list[tuple[Any, bool]]
    ) -> x509.CertificateBuilder:
        years = 1 if name else 0  # the certificate of a signer has no name
        life = datetime.timedelta(days=365 * years) or 10 * MINUTE
        builder = (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(by))
            .public_key(key.private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.now - life)
            .not_valid_after(self.now + life)
        )
        own = x509.SubjectKeyIdentifier.from_public_key(key.private.public_key())
        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.private.public_key())
        for extension, critical in [*extensions, (own, False), (above, False)]:
            builder = builder.add_extension(extension, critical)
        return builder

    def _issue(self, key: Key, issuer: Key, name: str, by: str, *, ca: bool) -> x509.Certificate:
        usages = [not ca, False, False, False, False, ca, ca, False, False]
        extensions: list[tuple[Any, bool]] = [(x509.KeyUsage(*usages), True)]
        if ca:
            extensions.append((x509.BasicConstraints(True, None), True))
        else:
            extensions.append((x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), True))
        builder = self._builder(key, issuer, name, by, extensions)
        return builder.sign(issuer.private, hashes.SHA256())

    def _certificate_timestamp(self, unlogged: x509.Certificate) -> bytes:
        """Promise that the log has the certificate (RFC 6962, sections 3.2 and 3.3)."""
        milliseconds = int(self.now.timestamp() * 1000)
        body = unlogged.tbs_certificate_bytes
        entry = self.authority.id + len(body).to_bytes(3) + body
        signed = struct.pack("!BBQH", 0, 0, milliseconds, 1) + entry + bytes(2)
        signature = self.certificate_log.sign(signed)
        stamp = bytes(1) + self.certificate_log.id + struct.pack("!QH", milliseconds, 0)
        stamp += bytes([4, 3]) + len(signature).to_bytes(2) + signature
        listed = len(stamp).to_bytes(2) + stamp
        listed = len(listed).to_bytes(2) + listed
        assert len(listed) < 128
        return bytes([4, len(listed)]) + listed

    # ---- The log of signatures

    def _first_entry(
        self,
        payload: bytes,
        signature: bytes,
        certificate: x509.Certificate,
        at: datetime.datetime,
    ) -> dict[str, Any]:
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        spec = {
            "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
            "signatures": [{"signature": base64(signature), "verifier": base64(pem)}],
        }
        entry = self._logged("dsse", "0.0.1", spec)
        seconds = int(at.timestamp())
        promised = {
            "body": entry["canonicalizedBody"],
            "integratedTime": seconds,
            "logID": self.signature_log.id.hex(),
            "logIndex": int(entry["logIndex"]),
        }
        promise = {"signedEntryTimestamp": base64(self.signature_log.sign(canonical(promised)))}
        return {**entry, "integratedTime": str(seconds), "inclusionPromise": promise}

    def _second_entry(
        self, pae: bytes, signature: bytes, certificate: x509.Certificate
    ) -> dict[str, Any]:
        verifier = {
            "x509Certificate": {"rawBytes": base64(in_der(certificate))},
            "keyDetails": P256,
        }
        data = {"algorithm": "SHA2_256", "digest": base64(hashlib.sha256(pae).digest())}
        content = {"content": base64(signature), "verifier": verifier}
        spec = {"hashedRekordV002": {"data": data, "signature": content}}
        return self._logged("hashedrekord", "0.0.2", spec)

    def _logged(self, kind: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = canonical({"apiVersion": version, "kind": kind, "spec": spec})
        index = len(self.entries)
        self.entries += [body, b"the next one"]
        leaves = [hashlib.sha256(b"\0" + entry).digest() for entry in self.entries]
        root = base64(tree_of(leaves))
        note = f"log.test\n{len(leaves)}\n{root}\n"
        signed = self.signature_log.id[:4] + self.signature_log.sign(note.encode())
        proof = {
            "logIndex": str(index),
            "rootHash": root,
            "treeSize": str(len(leaves)),
            "hashes": [base64(node) for node in path_of(leaves, index)],
            "checkpoint": {"envelope": f"{note}\n\u2014 log.test {base64(signed)}\n"},
        }
        return {
            "logIndex": str(index),
            "logId": {"keyId": base64(self.signature_log.id)},
            "kindVersion": {"kind": kind, "version": version},
            "inclusionProof": proof,
            "canonicalizedBody": base64(body),
        }

    # ---- Time

    def _timestamp(self, data: bytes) -> bytes:
        """Ask OpenSSL for a timestamp (RFC 3161)."""
        folder, openssl = self.folder, needs.program("openssl")
        form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        files = {
            "data": data,
            "serial": b"01",
            "tsa.cnf": OPENSSL_TSA.format(folder=folder).encode(),
            "tsa.key": self.time.private.private_bytes(serialization.Encoding.PEM, *form),
            "tsa.pem": self.time_certificate.public_bytes(serialization.Encoding.PEM),
        }
        for name, content in files.items():
            (folder / name).write_bytes(content)
        query = ["-query", "-data", "data", "-sha256", "-cert", "-out", "query"]
        reply = ["-reply", "-queryfile", "query", "-inkey", "tsa.key", "-signer", "tsa.pem"]
        for words in (query, [*reply, "-config", "tsa.cnf", "-out", "reply"]):
            command = [openssl, "ts", *words]
            subprocess.run(command, cwd=folder, capture_output=True, check=True)
        return (folder / "reply").read_bytes()

    def _trusted_root(self) -> dict[str, Any]:
        def authority(*chain: x509.Certificate) -> dict[str, Any]:
            certificates = [{"rawBytes": base64(in_der(link))} for link in chain]
            return {
                "subject": {"organization": "test", "commonName": "test"},
                "uri": "https://authority.test",
                "certChain": {"certificates": certificates},
                "validFor": {"start": BEGIN},
            }

        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [self.signature_log.log("https://log.test")],
            "certificateAuthorities": [
                authority(self.authority_certificate, self.root_certificate)
            ],
            "ctlogs": [self.certificate_log.log("https://certificates.test")],
            "timestampAuthorities": [authority(self.time_certificate, self.root_certificate)],
        }


def base64(data: bytes) -> str:
    """Write bytes as text."""
    return b64encode(data).decode()


def canonical(fields: dict[str, Any]) -> bytes:
    """Write JSON as RFC 8785 does, which these values need no more for."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def in_der(certificate: x509.Certificate) -> bytes:
    """Write a certificate."""
    return certificate.public_bytes(serialization.Encoding.DER)


def named(name: str) -> x509.Name:
    """Name a subject; the empty one is allowed."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])


def tree_of(leaves: list[bytes]) -> bytes:
    """The root of a log (RFC 6962, section 2.1)."""
    if len(leaves) == 1:
        return leaves[0]
    cut = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + tree_of(leaves[:cut]) + tree_of(leaves[cut:])).digest()


def path_of(leaves: list[bytes], index: int) -> list[bytes]:
    """The proof that a log has an entry (RFC 6962, section 2.1.1)."""
    if len(leaves) == 1:
        return []
    cut = 1 << (len(leaves) - 1).bit_length() - 1
    if index < cut:
        return [*path_of(leaves[:cut], index), tree_of(leaves[cut:])]
    return [*path_of(leaves[cut:], index - cut), tree_of(leaves[:cut])]

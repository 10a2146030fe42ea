"""Keys: where a private key is, and how its passphrase or PIN is given; never as an argument."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import packer.trust.sign.keys
from runtime.error import VerifyError
from runtime.trust.verify import read_public_key, verify_file

from ....support import needs, signing
from ....support.command_line import Packer, done, refused

ALGORITHMS = packer.trust.sign.keys.ALGORITHMS


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A library to sign."""
    return signing.library(tmp_path / "model.so")


def openssl(*words: str | Path) -> None:
    """Run OpenSSL's command."""
    subprocess.run([needs.program("openssl"), *words], capture_output=True, check=True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_passphrase_comes_from_the_environment(algorithm, packer: Packer, model) -> None:
    """The file is encrypted; OpenSSL reads it with the same passphrase."""
    given = {"env": {**os.environ, "DSO_KEY_PASSPHRASE": "open sesame"}}
    done(packer("keygen", "acme", "--passphrase", "--algorithm", algorithm, **given))
    key = model.with_name("acme.key")
    assert b"ENCRYPTED PRIVATE KEY" in key.read_bytes()
    openssl("pkey", "-in", key, "-passin", "pass:open sesame", "-noout")
    words = ["sign", "model.so", "--key", "acme.key"]
    done(packer(*words, **given))
    done(packer("verify", "model.so", "--key", "acme.pub"))
    wrong = {**os.environ, "DSO_KEY_PASSPHRASE": "x"}
    assert "the passphrase is wrong" in refused(packer(*words, env=wrong))
    assert "set DSO_KEY_PASSPHRASE" in refused(packer(*words, stdin=subprocess.DEVNULL))
    text = refused(packer("keygen", "b", "--passphrase", stdin=subprocess.DEVNULL))
    assert "no passphrase; set DSO_KEY_PASSPHRASE" in text


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_public_keys_are_read_in_every_form(algorithm, model) -> None:
    """As OpenSSL writes them, byte for byte; and with text, other lines and a compressed point."""
    key, public = signing.keys(model.parent, algorithm=algorithm)
    packer.trust.sign.sign_library(model, key)
    pem, other = public.read_bytes(), model.with_name("other.pub")
    openssl("pkey", "-in", key, "-pubout", "-out", other)
    assert other.read_bytes() == pem
    forms = [b"a comment\n" + pem, pem.replace(b"\n", b"\r\n"), pem.rstrip()]
    if algorithm == "ecdsa-p256":
        openssl("pkey", "-in", key, "-pubout", "-ec_conv_form", "compressed", "-out", other)
        forms.append(other.read_bytes())
    for form in forms:
        assert read_public_key(form).pem == pem
        verify_file(model, [form])
    with pytest.raises(VerifyError, match="not a public key in PEM"):
        read_public_key(pem.replace(b"M", b"N", 1))


def test_keys_come_from_the_environment(packer: Packer, model) -> None:
    """As CI gives secrets; both halves."""
    key, public = signing.keys(model.parent)
    environment = {**os.environ, "K": key.read_text(), "P": public.read_text()}
    done(packer("sign", "model.so", "--key", "env:K", env=environment))
    done(packer("verify", "model.so", "--key", "env:P", env=environment))
    assert "env:K: the environment variable is not set" in refused(
        packer("sign", "model.so", "--key", "env:K")
    )


def test_readable_key_is_a_warning(packer: Packer, model) -> None:
    """The signature is made (H8)."""
    key, _ = signing.keys(model.parent)
    key.chmod(0o644)
    made = packer("sign", "model.so", "--key", "acme.key")
    assert made.returncode == 0
    expected = "packer: warning: acme.key: other users may read this key (mode 0644); chmod 600"
    assert made.stderr.startswith(expected)


@pytest.mark.parametrize("name", ["rsa", "p384", "ed448"])
def test_keys_of_other_algorithms_are_refused(name, model, tmp_path) -> None:
    """Both halves, by a reason for programs."""
    options = {"rsa": ["RSA"], "p384": ["EC", "-pkeyopt", "ec_paramgen_curve:P-384"]}
    words = options.get(name, [name.upper()])
    key, public = tmp_path / "o.key", tmp_path / "o.pub"
    openssl("genpkey", "-algorithm", *words, "-out", key)
    openssl("pkey", "-in", key, "-pubout", "-out", public)
    for refuse in (
        lambda: packer.trust.sign.sign_library(model, key),
        lambda: verify_file(model, [public]),
    ):
        with pytest.raises(VerifyError, match="expected Ed25519 or ECDSA on P-256") as caught:
            refuse()
        assert caught.value.reason == "algorithm"


def test_wrong_files_are_no_keys(model, tmp_path) -> None:
    """Each says what it is (H7)."""
    key, public = signing.keys(tmp_path)
    certificate, large = tmp_path / "c.pem", tmp_path / "large"
    openssl("req", "-x509", "-key", key, "-subj", "/CN=a", "-out", certificate)
    large.write_bytes(b"a" * 70_000)
    cut = tmp_path / "cut.pub"
    cut.write_bytes(public.read_bytes()[:60])
    rows = {
        key: "a private key, expected the public one",
        certificate: "a certificate, expected a public key: openssl x509",
        large: "expected a key of at most 65536",
        cut: "not a public key in PEM",
        tmp_path / "none": "No such file",
        tmp_path: "not a regular file",
    }
    for path, text in rows.items():
        with pytest.raises(VerifyError, match=text) as caught:
            read_public_key(path)
        assert caught.value.reason == "key"
    for path, text in ((public, "a public key, expected the private"), (large, "at most 65536")):
        with pytest.raises(VerifyError, match=text):
            packer.trust.sign.sign_library(model, path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_key_on_a_token_signs(algorithm, packer: Packer, model, tmp_path) -> None:
    """SoftHSM; the private key is not on disk any more."""
    token = signing.Token(tmp_path)
    key, public = signing.keys(tmp_path, algorithm=algorithm)
    uri = token.load(key, "acme")
    key.unlink()
    given = {"env": {**token.environment, "DSO_PKCS11_PIN": signing.PIN}}
    done(packer("sign", "model.so", "--key", uri, **given))
    assert verify_file(model, [public]).name == "model.so"


def test_errors_of_a_token_are_told_apart(packer: Packer, model, tmp_path) -> None:
    """PIN, token, key, module; and a PIN among the arguments, which others see."""
    token = signing.Token(tmp_path)
    key, _ = signing.keys(tmp_path)
    uri = token.load(key, "acme")
    right = {**token.environment, "DSO_PKCS11_PIN": signing.PIN}

    def refusal(name: str, environment: dict[str, str] = right) -> str:
        words = ["sign", "model.so", "--key", name]
        return refused(packer(*words, env=environment, stdin=subprocess.DEVNULL))

    assert "the PIN is wrong" in refusal(uri, {**right, "DSO_PKCS11_PIN": "0000"})
    assert "set DSO_PKCS11_PIN" in refusal(uri, token.environment)
    assert "no such token" in refusal(uri.replace("release", "debug"))
    assert "no pair of keys of this name" in refusal(token.uri("other"))
    assert "cannot open shared object file" in refusal(f"{uri}.none")
    assert "no module-path" in refusal(uri.partition("?")[0])
    assert "expected the token" in refusal("pkcs11:object=acme?module-path=a")
    assert "expected each of" in refusal(uri.replace("object=", "objekt="))
    text = refusal(f"{uri}&pin-value={signing.PIN}")
    assert "others see it" in text and signing.PIN not in text
    assert not model.with_name("model.so.sigstore.json").exists()

"""Files that a policy must refuse, at both doors: `runtime.load` and `packer verify`.

The rows A19 and H1 to H8 of the list of bad inputs. Each library has a constructor that would leave
a mark; each refusal has a reason, and takes at most 100 ms.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import packer
import runtime
from packer.cli import main
from packer.inspect import open_library
from packer.trust.sign import library_statement, sign_library
from runtime import Trust
from runtime.error import VerifyError

from ...support import signing
from ...support.sigstore_instance import IDENTITY, ISSUER, MINUTE, Instance

CODE = """
#include <stdio.h>
__attribute__((constructor)) static void leave_a_mark(void) { fclose(fopen(MARK, "w")); }
int twice(int x) { return 2 * x; }
"""


class Scene(NamedTuple):
    """A signed library in a folder, whose constructor makes the file `mark`."""

    path: Path
    mark: Path
    key: Path
    public: Path
    other: Path
    instance: Instance

    @property
    def bundle(self) -> Path:
        """The bundle beside it."""
        return signing.sidecar(self.path)

    @property
    def by_identity(self) -> list[str]:
        """Options of the right identity."""
        root = ["--trusted-root", str(self.instance.trusted_root)]
        return ["--identity", IDENTITY, "--issuer", ISSUER, *root]

    def edit(self, old: bytes, new: bytes) -> None:
        """Change the bundle."""
        data = self.bundle.read_bytes()
        assert old in data
        self.bundle.write_bytes(data.replace(old, new, 1))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Export and sign once; each test has a copy."""
    folder = tmp_path_factory.mktemp("hostile")
    mark = folder / "mark"
    module = packer.CSourceModule(CODE, functions="auto", options=[f'-DMARK="{mark}"', "-O1"])
    path = packer.export_library(
        module, folder / "model.so", output=packer.Output(signature_room=4096)
    )
    key, public = signing.keys(folder)
    other, _ = signing.keys(folder, "other")
    sign_library(path, key, version="1.4")
    scene = Scene(path, mark, key, public, other, Instance(folder / "instance"))
    mark.unlink(missing_ok=True)
    # Once, so that what is imported is not in the times below.
    assert main(["verify", str(path), "--key", str(public)]) == 0
    Trust.sigstore(IDENTITY, ISSUER, trusted_root=scene.instance.trusted_root)
    return scene


@pytest.fixture
def scene(made: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A copy of the library and its bundle."""
    monkeypatch.delenv("DSO_TRUST", raising=False)
    copy = made._replace(path=tmp_path / "model.so")
    copy.path.write_bytes(made.path.read_bytes())
    copy.bundle.write_bytes(made.bundle.read_bytes())
    return copy


# ---- Each makes one row, and returns what to ask besides the key


def wrong_key(scene: Scene) -> None:
    """H2."""
    sign_library(scene.path, scene.other)


def foreign_identity(scene: Scene) -> list[str]:
    """H2."""
    signer = scene.instance.signer("mallory@forge.test")
    statement = library_statement(scene.path)
    scene.bundle.write_text(json.dumps(scene.instance.bundle(statement, signer)))
    return scene.by_identity


def expired_identity(scene: Scene) -> list[str]:
    """H2."""
    statement, late = library_statement(scene.path), scene.instance.now + 11 * MINUTE
    scene.bundle.write_text(json.dumps(scene.instance.bundle(statement, at=late)))
    return scene.by_identity


def revoked_key(scene: Scene) -> list[str]:
    """H2: it is in no rule any more, and the bundle still names it."""
    return ["--key", str(scene.other.with_suffix(".pub"))]


def signature_of_another_file(scene: Scene) -> None:
    """H2: the same name, in another folder."""
    folder = scene.path.parent / "elsewhere"
    folder.mkdir()
    other = signing.library(folder / scene.path.name, output=packer.Output(signature_room=4096))
    sign_library(other, scene.key)
    scene.bundle.write_bytes(signing.sidecar(other).read_bytes())


def two_signatures_one_bad(scene: Scene) -> None:
    """H2: the one inside is right."""
    sign_library(scene.path, scene.key, embed=True)
    scene.edit(b'"sig":"', b'"sig":"AA')


def older_version(scene: Scene) -> list[str]:
    """H3: a file that was right once, with its signature."""
    return ["--key", str(scene.public), "--minimum-version", "1.5"]


def missing_sidecar(scene: Scene) -> None:
    """H1 and H5: it was there."""
    scene.bundle.unlink()


def stripped_room(scene: Scene) -> None:
    """H5: zeros where the signature was."""
    sign_library(scene.path, scene.key, embed=True)
    scene.bundle.unlink()
    data = scene.path.read_bytes()
    start = data.index(b'{"mediaType"')
    end = data.index(b"\0", start)
    scene.path.write_bytes(data[:start] + bytes(end - start) + data[end:])


def longer_file(scene: Scene) -> None:
    """H6."""
    scene.path.write_bytes(scene.path.read_bytes() + b"\0")


def shorter_file(scene: Scene) -> None:
    """H6."""
    scene.path.write_bytes(scene.path.read_bytes()[:-1])


def changed_file(scene: Scene) -> None:
    """H4: before the load."""
    data = bytearray(scene.path.read_bytes())
    data[data.index(b"leave") if b"leave" in data else len(data) // 2] ^= 1
    scene.path.write_bytes(data)


def cut_bundle(scene: Scene) -> None:
    """H7."""
    scene.bundle.write_bytes(scene.bundle.read_bytes()[:-30])


def unknown_algorithm(scene: Scene) -> None:
    """H2: as if it were not there."""
    scene.edit(b"bundle.v0.3", b"bundle.v9.9")


def unknown_key_algorithm(scene: Scene) -> list[str]:
    """H2: of the rule."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed448

    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = ed448.Ed448PrivateKey.generate().public_key()
    path = scene.path.with_name("ed448.pub")
    path.write_bytes(public.public_bytes(serialization.Encoding.PEM, form))
    return ["--key", str(path)]


def duplicate_keys(scene: Scene) -> None:
    """H7: parsers differ in which one they take."""
    scene.edit(b'"dsseEnvelope":', b'"dsseEnvelope":{},"dsseEnvelope":')


def oversized_bundle(scene: Scene) -> None:
    """H7."""
    scene.bundle.write_bytes(scene.bundle.read_bytes() + b" " * (1 << 20))


def malformed_key(scene: Scene) -> list[str]:
    """H7."""
    path = scene.path.with_name("cut.pub")
    path.write_bytes(scene.public.read_bytes()[:60])
    return ["--key", str(path)]


def key_as_argument(scene: Scene) -> list[str]:
    """H8: other users of the machine see arguments."""
    return ["--key", scene.public.read_text()]


ROWS = {
    wrong_key: ("signer", "signed with key"),
    foreign_identity: ("identity", "signed by 'mallory@forge.test', expected 'https://forge.test"),
    expired_identity: ("expired", "when the certificate was not valid"),
    revoked_key: ("signer", "name the signer's public key"),
    signature_of_another_file: ("size", "as signed"),
    two_signatures_one_bad: ("signature", "the signature is not that of key"),
    older_version: ("version", "version 1.4, expected 1.5 or newer"),
    missing_sidecar: ("unsigned", "no signature: no "),
    stripped_room: ("unsigned", "no signature: no "),
    longer_file: ("size", "as signed"),
    shorter_file: ("size", "as signed"),
    changed_file: ("digest", "was changed"),
    cut_bundle: ("bundle", "not JSON"),
    unknown_algorithm: ("algorithm", "mediaType"),
    unknown_key_algorithm: ("algorithm", "expected Ed25519 or ECDSA on P-256"),
    duplicate_keys: ("bundle", "twice"),
    oversized_bundle: ("oversized", "expected a bundle of at most"),
    malformed_key: ("key", "not a public key in PEM"),
    key_as_argument: ("key", "other users see arguments"),
}


def rule_of(words: Sequence[str]) -> Trust:
    """The rule that asks what these options of `packer verify` ask."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    version = options.get("--minimum-version")
    if "--key" in options:
        return Trust.keys(options["--key"], minimum_version=version)
    identity, issuer, root = (options[f"--{n}"] for n in ("identity", "issuer", "trusted-root"))
    return Trust.sigstore(identity, issuer, trusted_root=root)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_hostile_files_are_refused(
    row: Callable[[Scene], list[str] | None], scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each by a reason, and nothing of the file runs."""
    words = row(scene) or ["--key", str(scene.public)]
    scene.mark.unlink(missing_ok=True)
    reason, text = ROWS[row]

    started = time.process_time()
    with pytest.raises(VerifyError) as caught:
        runtime.load(scene.path, trust=rule_of(words))
    assert time.process_time() - started < 0.1
    assert (caught.value.reason, text in str(caught.value)) == (reason, True), caught.value

    started = time.process_time()
    assert main(["verify", str(scene.path), *words]) == 1
    assert time.process_time() - started < 0.1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("packer: ")
    assert text in printed.err
    assert "BEGIN" not in printed.err
    assert not scene.mark.exists()


def test_the_right_file_is_loaded(scene: Scene) -> None:
    """The scene itself is sound, with either signer."""
    assert main(["verify", str(scene.path), "--key", str(scene.public)]) == 0
    assert not scene.mark.exists()
    assert runtime.load(scene.path, trust=Trust.keys(scene.public))["twice"](4) == 8
    assert scene.mark.exists()
    bundle = scene.instance.bundle(library_statement(scene.path))
    scene.bundle.write_text(json.dumps(bundle))
    assert main(["verify", str(scene.path), *scene.by_identity]) == 0
    assert runtime.load(scene.path, trust=rule_of(scene.by_identity))["twice"](4) == 8


def test_every_flipped_bit_is_refused(made: Scene) -> None:
    """A19: every bit of a library's header and of its blob; at the end it loads as it was."""
    library = signing.library(made.path.with_name("small.so"))
    blob = open_library(str(library)).report.blob
    assert blob is not None
    assert blob.offset is not None
    data = bytearray(library.read_bytes())
    rule = Trust.sha256(hashlib.sha256(data).hexdigest())
    places = [*range(64), *range(blob.offset, blob.offset + blob.nbytes)]
    for bit in (8 * place + shift for place in places for shift in range(8)):
        data[bit >> 3] ^= 1 << (bit & 7)
        with pytest.raises(VerifyError) as caught:
            runtime.load_from_bytes(data, trust=rule)
        assert caught.value.reason == "digest"
        data[bit >> 3] ^= 1 << (bit & 7)
    assert runtime.load_from_bytes(data, trust=rule)["add"](1, 2) == 3

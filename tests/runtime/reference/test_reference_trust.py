"""Pickles by reference under a trust policy."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from pathlib import Path

import pytest

import runtime
from runtime import Trust
from runtime.error import VerifyError
from runtime.reference import resident


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pickled(model: Path, fetch: str | None = None) -> bytes:
    """A pickle whose module is not in use any more."""
    return pickle.dumps(runtime.by_reference(runtime.load(model), fetch=fetch))


def set_policy(folder: Path, text: str) -> None:
    """Set a policy of this text."""
    (folder / "trust.toml").write_text(text)
    runtime.set_trust_policy(folder / "trust.toml")


def test_the_rule_of_the_folder_is_asked(model: Path, tmp_path: Path) -> None:
    """Accepted, it is loaded from sealed memory; refused, it is not fetched instead."""
    data = pickled(model)
    set_policy(tmp_path, f'[[folder]]\npath = "."\nsha256 = ["{digest(model)}"]\n')
    module = pickle.loads(data)
    assert module["answer"]() == 42
    assert module._opened_for is not None
    assert pickle.loads(data) is module
    set_policy(tmp_path, f'[[folder]]\npath = "."\nsha256 = ["{"0" * 64}"]\n')
    with pytest.raises(VerifyError, match="sha256"):
        pickle.loads(data)  # in use, and asked again
    del module
    resident._kept.clear()
    with pytest.raises(VerifyError, match="sha256"):
        pickle.loads(data)


def test_a_module_in_use_that_no_rule_accepted_is_loaded_again(model: Path) -> None:
    """Loaded before the policy, it stays as it is; the pickle gives one that was verified."""
    before = runtime.by_reference(runtime.load(model))
    runtime.set_trust_policy(Trust.sha256(digest(model)))
    after = pickle.loads(pickle.dumps(before))
    assert after is not before
    assert after._opened_for is not None
    assert before["answer"]() == after["answer"]() == 42


def test_a_fetched_library_meets_the_rule_for_bytes(model: Path, tmp_path: Path) -> None:
    """It comes from elsewhere, as bytes do: the folder of the store needs no rule."""
    source = shutil.copy(model, tmp_path / "source.so")
    data = pickled(model, str(source))
    model.unlink()
    set_policy(tmp_path, f'[bytes]\nsha256 = ["{digest(source)}"]\n')
    assert pickle.loads(data)["answer"]() == 42
    resident._kept.clear()
    set_policy(tmp_path, 'default = "anyone"\n')
    with pytest.raises(VerifyError, match=r"bytes without \[bytes\]"):
        pickle.loads(data)


def test_a_verified_module_is_pickled_by_the_digest_of_its_copy(model: Path) -> None:
    """The sealed bytes, whatever is at the path meanwhile."""
    expected = digest(model)
    module = runtime.load(model, trust=Trust.sha256(expected))
    model.write_bytes(b"other bytes")
    reference = runtime.by_reference(module)._reference.reference
    assert reference == (str(model), module._loaded_from.key[2], expected, None)

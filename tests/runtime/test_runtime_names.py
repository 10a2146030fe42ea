"""The public names of runtime, and names that are only reachable for files of 0.1.0."""

from __future__ import annotations

import pytest

import runtime


def test_every_public_name_is_imported_and_documented() -> None:
    """A name that moved, or that has no docstring, would be found by a user first."""
    for name in runtime.__all__:
        assert getattr(runtime, name).__doc__, name
    assert {*runtime.__all__} < {*dir(runtime)}


def test_every_name_under_modules_is_imported_and_documented() -> None:
    """Programs rarely name these module types."""
    for name in runtime.modules.__all__:
        assert getattr(runtime.modules, name).__doc__, name
    assert not {*runtime.modules.__all__} & {*runtime.__all__}


@pytest.mark.parametrize("name", ["OpaqueModule", "CarriedSharedLibraryModule", "MetadataModule"])
def test_names_that_extract_wrote_in_0_1_0(name) -> None:
    """Users keep the modules.py that it wrote."""
    assert getattr(runtime, name) is getattr(runtime.modules, name)


def test_parse_params_is_load_param_dict() -> None:
    """That modules.py names it too."""
    assert runtime.parse_params is runtime.load_param_dict


def test_unknown_name_is_an_attribute_error() -> None:
    """The message names the package and the name, as Python's own does."""
    with pytest.raises(AttributeError, match="^module 'runtime' has no attribute 'lod'$"):
        runtime.lod  # noqa: B018

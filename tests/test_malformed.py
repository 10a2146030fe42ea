"""Malformed blobs: the guard of each one refuses it, or it loads where the index allows that."""

from __future__ import annotations

from typing import Any

import pytest

import runtime

# The message of the one guard that refuses each blob, with its offset; None if the blob loads.
GUARDS = {
    "alias_graph_runtime": None,
    "bfb_empty": "at 0x0: a blob of 0 bytes, expected at least 8",
    "bfb_ok": None,
    "bfb_trunc_in_data": "at 0x27: a length of 100 bytes, expected at most 3 left",
    "cl_count_mismatch": "at 0x2d: 0 arrays for 1 names, expected as many",
    "cl_missing_var": (
        "at 0x3d: const_loader: 'f' needs unknown constants ['zz'], expected only known ones"
    ),
    "count_huge": "at 0x0: a count of 9223372036854775808 elements, expected at most 7",
    "count_too_small": "at 0x14: 52 bytes after the last of 1 entries, expected none",
    "empty_blob": "at 0x0: a blob of 0 bytes, expected at least 8",
    "fmap_len_2_24": "at 0x29: a count of 16777216 elements, expected at most 0",
    "gef_count_mismatch": "at 0x2e: 2 arrays for 1 names, expected as many",
    "gef_no_import": "at 0x97: module 1 cannot be reached from module 0, expected a tree",
    "key_len_1GiB": "at 0x8: a key of 1073741824 bytes, expected 1 to 255",
    "key_len_2_63": "at 0x0: a count of 1 elements, expected at most 0",
    "nbytes_huge_string_past_end": "at 0x0: nbytes is 1099511627776, expected 47 (symbol size - 8)",
    "nbytes_short": "at 0x0: nbytes is 68, expected 72 (symbol size - 8)",
    "nd_bits_0": "at 0x64: data type (0, 0, 1), expected a known code, 1 to 128 bits, lanes",
    "nd_code_99": "at 0x64: data type (99, 32, 1), expected a known code, 1 to 128 bits, lanes",
    "nd_dev_id": "at 0x5c: NDArray device_id 0x4d, expected 0x0",
    "nd_lanes4": None,
    "nd_ndim_big": "at 0x60: ndim 134217728, expected 0 to 64",
    "nd_reserved_nonzero": "at 0x50: NDArray reserved 0x5, expected 0x0",
    "nd_shape_4_0": None,
    "nd_shape_neg1": "at 0x68: shape (-1,), expected extents of at least 0",
    "nd_shape_scalar": None,
    "no_lib": None,
    "ok_minimal": None,
    "trailing_garbage": "at 0x48: 7 bytes after the last of 2 entries, expected none",
    "tree_child_self": "at 0x3c: module 1 is on a cycle or below one, expected a tree",
    "tree_cycle_lookup": "at 0x3c: module 0 is on a cycle or below one, expected a tree",
    "tree_first": None,
    "tree_orphan": "at 0x66: module 2 cannot be reached from module 0, expected a tree",
    "tree_rowptr_empty": "at 0x3c: 0 row pointers, expected 3",
    "tree_rowptr_past_child_by1": "at 0x3c: row pointers from 0 to 2, expected from 0 to 1",
    "tree_rowptr_short2": "at 0x64: 2 row pointers, expected 4",
    "two_lib": "at 0x14: a second '_lib', expected one at most",
    "vec_len_2_58": "at 0x28: a count of 288230376151711744 elements, expected at most 0",
}


def _load(case: dict[str, Any], data: bytes, pack_blob) -> runtime.Module:
    if case["mode"] == "DeserializeModuleFromBytes":
        return runtime.deserialize_module_from_bytes(data)
    return runtime.load(pack_blob(data, nbytes=case["header_nbytes"]))


def test_malformed_blob(malformed_case, pack_blob) -> None:
    """A blob loads, or its guard refuses it; the index allows the outcome."""
    name, case, data = malformed_case
    assert name in GUARDS, "name the guard that this blob trips"
    guard = GUARDS[name]
    assert case["expect"] in ("either", "refuse" if guard else "accept")
    if guard is None:
        assert _load(case, data, pack_blob)
        return
    with pytest.raises((runtime.BlobFormatError, runtime.LoaderNotFoundError)) as raised:
        _load(case, data, pack_blob)
    assert str(raised.value).endswith(f" {guard}")

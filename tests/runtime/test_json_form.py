"""The JSON form of a tree, and damaged JSON."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime

from .interchanged import device


def test_json_is_the_form_of_tvm() -> None:
    """A graph of null and one module, whose bytes have their length before them."""
    module = device("add")
    data = runtime.serialize_module_to_bytes(module, export_dso=False)
    graph = json.loads(runtime.save_json(module))
    text = base64.b64encode(struct.pack("<Q", len(data)) + data).decode()
    assert graph == {
        "root": 1,
        "nodes": [{"type_key": ""}, {"type_key": "runtime.Module", "repr_b64": text}],
        "b64ndarrays": [],
        "attrs": {"tvm_version": "0.20.0", "producer": f"dso-packer {runtime.__version__}"},
    }


def graph(**fields: Any) -> str:
    """JSON of a graph with one module, some of it replaced."""
    node = {"type_key": "runtime.Module", "repr_b64": "CAAAAAAAAAAAAAAAAAAAAA=="}
    return json.dumps({"root": 1, "nodes": [{"type_key": ""}, {**node, **fields}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "json: JSONDecodeError"),
        ("null", "json: TypeError"),
        ("[1, 2]", "json: TypeError"),
        ('{"root": 1}', "json: KeyError 'nodes'"),
        ('{"nodes": []}', "json: KeyError 'root_index'"),
        ('{"root": 0, "nodes": []}', "json: IndexError"),
        ('{"root": "0", "nodes": [1]}', "json: TypeError"),
        ('{"root": 0, "nodes": [1]}', "json: AttributeError"),
        ("[" * 100_000, "json: RecursionError"),
        ('{"root": ' + "1" * 10_000 + "}", "json: ValueError"),
        (b"\xff\xfe\xff", "json: UnicodeDecodeError"),
        (graph(type_key="tir.Var"), "a root of type 'tir.Var', expected 'runtime.Module'"),
        (graph(repr_b64=7), "repr_b64 is 7, expected text"),
        (graph(repr_b64="?"), "json: repr_b64: "),
        (graph(repr_b64=""), "repr_b64 of 0 bytes"),
        (
            graph(repr_b64="CQAAAAAAAAAAAAAAAAAAAA=="),
            "16 bytes, expected 8 and the 9 that they announce",
        ),
        (graph(), "no import tree"),
    ],
)
def test_damaged_json_is_refused(text, message) -> None:
    """Not JSON, not a graph, not a module, not base64, not a blob: our error for each."""
    with pytest.raises(runtime.BlobFormatError, match=message):
        runtime.load_json(text)


@given(st.data())
def test_text_that_was_damaged_is_our_error_or_a_tree(data) -> None:
    """Some characters replaced, anywhere, in either form."""
    for write, read in (
        (runtime.save_json, runtime.load_json),
        (runtime.export_module_to_base64, runtime.import_module_from_base64),
    ):
        text = write(device("a", device("b")))
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 8))
        damaged = text[:start] + data.draw(st.text(max_size=8)) + text[start + length :]
        with contextlib.suppress(runtime.BlobFormatError, runtime.LoaderNotFoundError):
            assert isinstance(read(damaged), runtime.Module)


def test_json_of_other_dialect_is_refused() -> None:
    """As apache-tvm 0.27 writes it (tvm.ir.save_json of a C source module)."""
    node = {"type": "ffi.Module", "data": "AgAAAAAAAAA="}
    text = json.dumps({"root_index": 0, "nodes": [node], "metadata": {"tvm_version": "0.27.0"}})
    with pytest.raises(runtime.BlobFormatError, match="'ffi.Module'.* reads dialect 'tvm'"):
        runtime.load_json(text)

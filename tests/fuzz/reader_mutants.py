"""Mutants of blobs, symbols, manifests and params files: number i of a seed is always the same."""

from __future__ import annotations

import json
from random import Random
from typing import NamedTuple

import runtime
from runtime.blob import parse
from runtime.serial.manifest import dump_manifest

from .edited_inputs import Seed, edit_binary
from .seeds import arrays, blobs, number_fields

# Of a tree whose device code has a loader; without that, the manifest says where it ends.
KNOWN, UNKNOWN = b"cuda", b"cudx"


class Input(NamedTuple):
    """Bytes, their format (`payloads.FORMATS`), and the manifest of a blob that has one."""

    what: str
    data: Seed
    manifest: Seed | None = None


def make_inputs() -> list[Input]:
    """Valid inputs: blobs of all types in both dialects, some with a manifest, and parameters."""
    plain = blobs("tvm")
    inputs = [Input("tvm", _seed(data)) for data in plain]
    inputs += [Input("tvm-ffi", _seed(data)) for data in blobs("tvm-ffi")]
    symbols = [len(data).to_bytes(8, "little") + data for data in plain]
    inputs += [Input("symbol", Seed(data, ((0, 8),))) for data in symbols]
    inputs += [_without_loader(data) for data in plain if KNOWN in data]
    params = runtime.save_param_dict(arrays())
    # A type of two lanes whose array is too short for them, as old versions of TVM wrote it.
    short = params.replace(b"\2\x20\1\0", b"\2\x20\2\0", 1)
    return [*inputs, Input("params", _seed(params)), Input("params", _seed(short))]


def _seed(data: bytes) -> Seed:
    return Seed(data, number_fields(data))


def _without_loader(data: bytes) -> Input:
    blob = parse(data)
    for entry in blob.entries:
        entry.key = entry.key.replace(KNOWN.decode(), UNKNOWN.decode())
    manifest = dump_manifest(blob, producer="p", target="x86_64-linux-gnu")
    return Input("tvm", _seed(data.replace(KNOWN, UNKNOWN)), Seed(manifest))


class Mutants:
    """Inputs with up to four edits; a few are edited in the manifest."""

    def __init__(self, seed: int) -> None:
        self.inputs = make_inputs()
        self._seed = seed
        self._data = [given.data for given in self.inputs]
        self._manifests = [given.manifest for given in self.inputs if given.manifest]

    def make(self, number: int) -> Input:
        """Make the mutant of a number."""
        random = Random(self._seed << 32 | number)
        what, data, manifest = random.choice(self.inputs)
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
            if manifest is not None and random.random() < 0.5:
                manifest = self._edit_manifest(random, manifest)
            else:
                data = edit_binary(random, data, self._data)
        return Input(what, data, manifest)

    def _edit_manifest(self, random: Random, manifest: Seed) -> Seed:
        if random.random() < 0.3:
            return edit_binary(random, manifest, self._manifests)
        try:
            fields = json.loads(manifest.data)
        except ValueError:
            return manifest
        entries = fields.get("entries") if isinstance(fields, dict) else None
        if isinstance(entries, list) and entries and isinstance(entries[0], dict):
            entry = random.choice(entries)
            name = random.choice(("offset", "nbytes", "type_key"))
            entry[name] = random.choice(_edits(random, entry.get(name)))
        return Seed(json.dumps(fields).encode())


def _edits(random: Random, old: object) -> list[object]:
    number = old if isinstance(old, int) else 0
    steps = [number + random.choice((-8, -1, 1, 8)), random.randrange(1 << 64), 0, (1 << 63) - 1]
    return [*steps, True, 1.5, None, "x", "20", [], {}, "\ud800", KNOWN.decode()]

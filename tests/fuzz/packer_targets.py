"""The readers of packer: tars and objects, packer.toml, and the arrays that it names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import packer
import runtime
from packer.deferred_link import _embedded, _exported
from packer.project import read_project
from packer.project.arrays import read_array
from packer.toolchain.link_input import LinkInput

from ..support.graphs import sum_graph
from .edited_inputs import Seed, binary, lines
from .judge import Target
from .reading import in_file, of_seeds, words
from .seeds import PROJECTS, TOKENS, arrays, safetensors


def npy_target(folder: Path) -> Target:
    """Arrays that packer.toml names: edited bytes, and edited headers of the right length."""

    def with_header(header: bytes) -> bytes:
        return b"\x93NUMPY\1\0" + len(header[:65535]).to_bytes(2, "little") + header[:65535] + body

    np.save(folder / "seed.npy", arrays()["w"])
    data = (folder / "seed.npy").read_bytes()
    start = 10 + int.from_bytes(data[8:10], "little")
    body = data[start:]
    headers = lines([data[10:start].decode().replace(",", ",\n")], NPY_TOKENS)
    inputs = st.one_of(headers.map(with_header), binary([words(data, 1, start)]))
    return Target("npy", inputs, [data], in_file(folder / "fed.npy", read_array))


NPY_TOKENS = (
    *(
        "(2**62,)",
        "(-1,)",
        "(1 << 62, 1 << 62)",
        "(9999999999999999999999,)",
        "{",
        "}",
        "'|O'",
        "1",
    ),
    *(
        "'<f4'",
        "'|V0'",
        "'<U0'",
        "[('a', '<f4')]",
        "[('a', [('b', 'O')])]",
        "'M8[s]'",
        "('f4', (2,))",
    ),
    *("9" * 5000, "(" * 300, "-" * 9999, "'\\ud800'", "__import__('os')", "None", "True", "(0,)"),
)


def tar_target(folder: Path) -> Target:
    """The inputs of `packer link`: tars, and the objects in them."""

    def read(path: Path) -> None:
        unlinked = LinkInput(path)
        for _ in _exported(unlinked):
            pass
        for _ in _embedded(unlinked):
            pass

    host = packer.CSourceModule("int one(void) { return 1; }", functions={"one": "int(void)"})
    host.import_module(runtime.MetadataModule())
    seeds = []
    for suffix in ("tar", "o", "a"):
        data = packer.export_library(host, folder / f"seed.{suffix}").read_bytes()
        seeds.append(words(data, 4, 2048))
    return of_seeds("tar", seeds, in_file(folder / "fed.tar", read))


def project_target(folder: Path) -> Target:
    """packer.toml, with the files that it names in the same folder."""
    home = folder / "project"
    home.mkdir()
    (home / "a.c").write_text("int one(void) { return 1; }\n")
    (home / "k.ptx").write_text(".version 7.0\n.target sm_80\n.visible .entry k() { ret; }\n")
    (home / "g.json").write_text(json.dumps(sum_graph()))
    (home / "w.params").write_bytes(runtime.save_param_dict({"w": arrays()["w"]}))
    np.save(home / "w.npy", arrays()["w"])
    (home / "w.safetensors").write_bytes(safetensors())
    read = in_file(home / "packer.toml", read_project)
    valid = [text.encode() for text in PROJECTS]
    inputs = st.one_of(lines(PROJECTS, TOKENS), binary([Seed(data) for data in valid]))
    return Target("toml", inputs, valid, read)

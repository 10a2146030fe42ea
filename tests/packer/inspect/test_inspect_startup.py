"""inspect_library: code that runs at start-up is listed, and never runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import runtime
from packer.inspect import inspect_library, render

MARK = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void leave_mark(void) {
  FILE *file = fopen(getenv("MARK"), "w");
  if (file) fclose(file);
}
"""


def test_constructor_is_listed_and_leaves_no_mark(compile_library, tmp_path, monkeypatch) -> None:
    """A load would run it; an inspection does not, and keeps no map of the file."""
    path, mark = compile_library(MARK), tmp_path / "mark"
    monkeypatch.setenv("MARK", str(mark))
    report = inspect_library(path)
    json.dumps(report.to_dict())
    assert not mark.exists()
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert [c.kind for c in report.constructors if c.name == "leave_mark"] == ["init_array"]
    assert "leave_mark (init_array)" in render(report)
    runtime.load(path)
    assert mark.exists()


def test_file_is_never_mapped_executable(packed_library) -> None:
    """Nor opened by the dynamic loader: one plain map, which an audit hook sees, is all."""
    code = (
        "import sys, packer\n"
        "events = []\n"
        "sys.addaudithook(lambda e, a: events.append(e) if e[:5] in ('mmap.', 'ctype') else 0)\n"
        "packer.inspect_library(sys.argv[1])\n"
        "maps = [line for line in open('/proc/self/maps') if sys.argv[1] in line]\n"
        "print(events, maps)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, packed_library], capture_output=True, text=True, check=True
    )
    assert run.stdout == "['mmap.__new__'] []\n"


def test_constructors_keep_their_addresses_without_names(compile_library, tmp_path) -> None:
    """A stripped library has no names left for local functions."""
    path = tmp_path / "lib.so"
    path.write_bytes(compile_library(MARK).read_bytes())
    named = {c.address: c.name for c in inspect_library(path).constructors}
    subprocess.run(["strip", path], check=True)
    bare = inspect_library(path)
    assert [c.address for c in bare.constructors] == list(named)
    assert "leave_mark" in named.values()
    assert all(c.name is None for c in bare.constructors if named[c.address] == "leave_mark")


def test_exported_constructor_is_named_through_its_relocation(compile_library) -> None:
    """An interposable constructor has a symbolic relocation in DT_INIT_ARRAY."""
    path = compile_library(
        "__attribute__((constructor)) void first(void) {}", "-Wl,-Bdynamic", "-nostdlib"
    )
    assert [(c.kind, c.name) for c in inspect_library(path).constructors] == [
        ("init_array", "first")
    ]


def test_init_function_and_ifunc_are_listed(compile_library) -> None:
    """DT_INIT is first; the resolver of an IFUNC runs at load too."""
    path = compile_library(
        "int one(void) { return 1; }\n"
        "static void *pick(void) { return (void *)one; }\n"
        'int chosen(void) __attribute__((ifunc("pick")));\n'
        "void begin(void) {}",
        "-nostdlib",
        "-Wl,-init,begin",
    )
    found = [(c.kind, c.name) for c in inspect_library(path).constructors]
    assert found == [("init", "begin"), ("ifunc", "chosen")]

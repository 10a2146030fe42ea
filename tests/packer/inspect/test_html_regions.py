"""The regions of a library's page: as readelf has them, without overlap, bounded."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
from packer.elf.image import Image
from packer.inspect import inspect_library
from packer.inspect.page.content import describe
from packer.inspect.page.layout import lay_out
from packer.inspect.page.region import Region, fill, group, nest


def regions_of(path: Path) -> Region:
    """Return the regions of a file."""
    report = inspect_library(path)
    return lay_out(Image(memoryview(path.read_bytes()), str(path), []), report)


def all_regions(root: Region) -> list[Region]:
    """A region and all that are in it."""
    found = [root]
    for region in found:
        found.extend(region.children)
    return found


def content_of(path: Path) -> dict:
    """Return the content of the page of a library."""
    report = inspect_library(path)
    data = memoryview(path.read_bytes())
    return describe(report, data, lay_out(Image(data, str(path), []), report))


def assert_filled(root: Region) -> None:
    """The children of each region follow one another from its start to its end."""
    for region in all_regions(root):
        ends = [region.offset, *(child.end for child in region.children)]
        if region.children:
            assert [child.offset for child in region.children] == ends[:-1]
            assert ends[-1] == region.end
        assert region.nbytes > 0


@pytest.mark.parametrize("name", ["packed", "plain"])
def test_regions_are_the_sections_of_readelf(name, hostile_library) -> None:
    """Nothing is left out, and every section with bytes is at the offset that readelf reports."""
    path = hostile_library if name == "packed" else Path(runtime._core.__file__)
    root = regions_of(path)
    assert_filled(root)
    run = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True)
    line = re.compile(r"\] (\S+) +(\w+) +[0-9a-f]+ ([0-9a-f]{6,}) ([0-9a-f]{6,}) ")
    expected = {
        (name, int(offset, 16), int(nbytes, 16))
        for name, kind, offset, nbytes in line.findall(run.stdout)
        if kind != "NOBITS" and int(nbytes, 16)
    }
    found = {(r.name, r.offset, r.nbytes) for r in all_regions(root) if r.kind == "section"}
    assert found == expected


def test_blob_entries_are_regions_with_their_bytes(hostile_library) -> None:
    """Each entry's region begins, in the file, with the length of its key and the key."""
    blob, data = inspect_library(hostile_library).blob, hostile_library.read_bytes()
    found = {r.entry: r for r in all_regions(regions_of(hostile_library)) if r.entry is not None}
    assert [found[i].name for i in sorted(found)] == [entry.key for entry in blob.entries]
    for region in found.values():
        key = region.name.encode()
        start = data[region.offset : region.offset + 8 + len(key)]
        assert start == len(key).to_bytes(8, "little") + key


def test_rows_of_the_arrays_are_those_of_the_modules(accepted_blob, pack_blob) -> None:
    """The row of a module has its key and leads to its imports, in any order of the blob."""
    _, path = accepted_blob
    content = content_of(pack_blob(path.with_suffix(".bin").read_bytes()))
    keys = [r[0] for r in sorted(content["regions"], key=lambda r: (r[-1] is None, r[-1] or 0))]
    pointers, children = content["row_ptr"], content["child_indices"]
    for index, (key, _, _, imports, *_, row) in enumerate(content["modules"]):
        if row >= 0:
            assert keys[content["row_entries"][row]] == key.replace("library", "_lib")
            assert content["rows"][row] == index
            if pointers:
                found = [content["rows"][i] for i in children[pointers[row] : pointers[row + 1]]]
                assert list(dict.fromkeys(found)) == imports


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 200), st.integers(-9, 200)), max_size=30)
)
def test_inconsistent_headers_make_no_overlap(places) -> None:
    """The regions fill the file with each byte once, for any offsets and sizes in its headers."""
    root = Region("file", "file", "loaded", 0, 0, 100)
    nest(root, [Region("", "", "", *place) for place in places])
    fill(root, lambda parent, start, end: Region("", "gap", "", 9, start, end - start))
    assert_filled(root)


def test_many_parts_are_grouped() -> None:
    """However many entries a blob has, no bar has more blocks than are distinguishable."""
    root = Region("file", "file", "loaded", 0, 0, 70_000)
    root.children = [Region("", "", "", 1, i, 1, entry=i) for i in range(70_000)]
    group(root)
    assert_filled(root)
    assert max(len(region.children) for region in all_regions(root)) <= 64
    assert root.children[0].name == "entries 0 to 1,093"


def test_bytes_in_the_page_are_bounded(hostile_library) -> None:
    """An entry's first 4,096 bytes are there, and no more."""
    content = content_of(hostile_library)
    nbytes = [len(head) * 3 // 4 for head in content["heads"]]
    assert 4096 <= max(nbytes) <= 4098
    assert max(region[5] for region in content["regions"]) > 100_000

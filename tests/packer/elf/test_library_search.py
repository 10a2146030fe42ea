"""The search for a library: against ldconfig and the dynamic loader."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from packer.elf.library_search import Requester, find_library, find_system_library, parse_cache


def test_cache_agrees_with_ldconfig() -> None:
    """Names and paths, in its order."""
    data = Path("/etc/ld.so.cache").read_bytes()
    run = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    lines = [line.strip() for line in run.stdout.splitlines() if "=>" in line]
    expected = [(line.split()[0], line.rpartition("=> ")[2]) for line in lines]
    assert list(parse_cache(data)) == expected


def test_damaged_cache_gives_its_readable_entries() -> None:
    """Missing entries are left out, without an error."""
    data = Path("/etc/ld.so.cache").read_bytes()
    for nbytes in range(0, 4096, 64):
        list(parse_cache(data[:nbytes]))
    assert list(parse_cache(b"")) == []


def test_search_finds_the_libraries_that_the_dynamic_loader_maps() -> None:
    """The libraries of this very process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = {os.path.realpath(one.split()[-1]) for one in lines if "/libc.so.6" in one}
    found = find_system_library("libc.so.6")
    assert found is not None
    assert os.path.realpath(found) in mapped
    assert find_library("/none/libc.so.6", Requester("/")) is None
    assert find_library("libnone.so.6", Requester("/")) is None

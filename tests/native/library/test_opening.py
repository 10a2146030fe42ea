"""A library's file is replaced while it is loaded: by a preloaded dlopen, at the worst moment."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ...support.process import run_python

# Renames a link to SWAP_WITH to SWAP_PATH, once or always: as the file is mapped to be checked, or
# as dlopen opens it.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void put(const char *file) {
  char link_name[4096];
  snprintf(link_name, sizeof link_name, "%s.new", getenv("SWAP_PATH"));
  if (link(file, link_name) != 0 || rename(link_name, getenv("SWAP_PATH")) != 0) abort();
}

static int swap(const char *moment) {
  const char *wanted = getenv("SWAP_AT");
  if (wanted == NULL || strcmp(wanted, moment) != 0) return 0;
  if (getenv("SWAP_ALWAYS") == NULL) unsetenv("SWAP_AT");
  put(getenv("SWAP_WITH"));
  return 1;
}

static int begins_with(const char *name, const char *start) {
  return name != NULL && start != NULL && strncmp(name, start, strlen(start)) == 0;
}

/* A library that needs the core is opened by way of a file in memory. */
void *dlopen(const char *name, int flags) {
  void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  int is_it = begins_with(name, getenv("SWAP_PATH")) || begins_with(name, "/proc/self/fd/");
  int swapped = is_it && !(flags & RTLD_NOLOAD) && swap("dlopen");
  void *handle = next(name, flags);
  if (swapped && getenv("SWAP_BACK")) put(getenv("SWAP_BACK"));
  return handle;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  void *(*next)(void *, size_t, int, int, int, off_t) =
      (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  char name[32], path[4096] = "";
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  if (fd >= 0 && getenv("SWAP_AT") && readlink(name, path, sizeof path - 1) > 0 &&
      strcmp(path, getenv("SWAP_PATH")) == 0)
    swap("check");
  return next(address, length, protection, flags, fd, offset);
}
"""
VERSION = """
#include <stdio.h>
#include <stdlib.h>
#include "dso_packer.h"
extern int TVMBackendFreeWorkspace(int, int, void *);
int needs_the_core(void) { return BRIDGED ? TVMBackendFreeWorkspace(1, 0, 0) : 0; }
__attribute__((constructor)) static void run(void) {
  FILE *log = fopen(getenv("LOG"), "a");
  fputs(NAME, log);
  fclose(log);
}
DSO_EXPORT int __tvm_ffi_version(void *h, const dso_any *a, int32_t n, dso_any *result) {
  (void)h, (void)a, (void)n;
  *result = dso_int(NAME[0]);
  return 0;
}
"""
LOAD = """
import json, os, sys
from pathlib import Path
import runtime
path = os.environ["SWAP_PATH"]
os.environ["SWAP_AT"] = sys.argv[1]
log = Path(os.environ["LOG"])
try:
    first = chr(runtime.load(path)["version"]())
except runtime.LibraryLoadError as error:
    first = [error.reason, str(error).partition(": ")[2]]
os.environ.pop("SWAP_AT", None)
ran = log.read_text()
mapped = path in Path("/proc/self/maps").read_text()
print(json.dumps([first, ran, mapped, chr(runtime.load(path)["version"]())]))
"""


@pytest.fixture(params=["plain", "bridged"])
def load(
    request: pytest.FixtureRequest,
    compile_library: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """Load version A in a fresh process, in which B takes its place at a moment."""
    option = f"-DBRIDGED={int(request.param == 'bridged')}"
    path, other, back = (tmp_path / name for name in ("lib.so", "other.so", "back.so"))
    shutil.copy(compile_library(VERSION, '-DNAME="A"', option), path)
    shutil.copy(compile_library(VERSION, '-DNAME="B"', option), other)
    os.link(path, back)
    shim = compile_library(SHIM, "-ldl")
    before = os.environ.get("LD_PRELOAD", "")  # sanitizers must be first
    monkeypatch.setenv("LD_PRELOAD", f"{before} {shim}".strip())
    for name, value in {"PATH": path, "WITH": other}.items():
        monkeypatch.setenv(f"SWAP_{name}", str(value))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))

    def load(moment: str, *, swap_back: bool = False, always: bool = False) -> Any:
        if swap_back:
            monkeypatch.setenv("SWAP_BACK", str(back))
        if always:
            monkeypatch.setenv("SWAP_ALWAYS", "1")
        return run_python(LOAD, moment)

    return load


def test_file_replaced_before_dlopen_is_checked_again(load) -> None:
    """No code of the first file ran: the load continues with the second one."""
    assert load("check") == ["B", "B", False, "B"]


@pytest.mark.parametrize(("is_back", "version"), [(False, "B"), (True, "A")])
def test_file_replaced_as_dlopen_opens_it_is_opened_again(load, is_back, version) -> None:
    """The Module is of a checked file; the constructors of the other one have run once more."""
    assert load("dlopen", swap_back=is_back) == [version, f"B{version}", False, version]


def test_file_replaced_at_every_attempt_is_refused(load) -> None:
    """No Module is made; the error says that constructors may have run."""
    refused = [
        "busy",
        "was replaced during 8 attempts to open it, so code that was not checked may have run; "
        "load it again",
    ]
    assert load("dlopen", swap_back=True, always=True) == [refused, "B" * 8, False, "A"]

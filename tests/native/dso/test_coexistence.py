"""libdso beside Python's runtime, a real tvm_ffi, and a second libdso, in one process."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import packer

from ...support import needs
from ...support.dso_driver import ARCHIVE, HOME
from ...support.paths import C_SOURCES
from .three_runtimes import NUMBERS

LIB, INCLUDE = HOME / "lib", HOME / "include"
PLUGIN = C_SOURCES / "dso_plugin.cpp"
HOST = """
#include "dso_packer.h"
int64_t add(int64_t a, int64_t b) { return a + b; }
DSO_EXPORT int __tvm_ffi_who(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  (void)handle, (void)args, (void)count;
  return dso_call("test.who", result, dso_int(1));
}
"""
FUNCTIONS = {"add": "int64_t(int64_t a, int64_t b)"}
REFUSED = "add: argument 1 'a' (int64_t): expected an int, found str; declared as "
SHARED = [f"-L{LIB}", "-ldso", f"-Wl,-rpath,{LIB}"]
STATIC = [ARCHIVE, "-ldl", "-lm", "-pthread"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One library under several names, and plugins with each form of libdso."""
    folder: Path = tmp_path_factory.mktemp("coexistence")
    root = packer.CSourceModule(HOST, functions=FUNCTIONS)
    packer.export_library(root, folder / "same.so", format="tvm-ffi")
    for name in NUMBERS:
        shutil.copy(folder / "same.so", folder / f"{name}.so")
    for name, options in (("shared", SHARED), ("static", STATIC), ("static2", STATIC)):
        output = folder / f"plugin_{name}.so"
        command = ["c++", "-std=c++11", "-shared", "-fPIC", f"-I{INCLUDE}", PLUGIN, "-o", output]
        subprocess.run([*command, *options], check=True)
    return folder


@pytest.mark.parametrize("order", list(itertools.permutations(NUMBERS)), ids="-".join)
def test_three_runtimes(order, folder) -> None:
    """Each calls the same library and its own, with its own errors and global functions."""
    needs.importable("tvm_ffi", "test")
    script = Path(__file__).with_name("three_runtimes.py")
    command = [sys.executable, script, ",".join(order), folder / "plugin_shared.so", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    for name, said in json.loads(done.stdout).items():
        errors = [text for text in said if isinstance(text, str)]
        assert len(errors) == 4 and all(REFUSED in text for text in errors)
        assert [number for number in said if number in (1, 2, 3)] == [NUMBERS[name]] * 2
        assert set(said) - set(errors) == {42, NUMBERS[name]}


TWO = """
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "dso.h"

/* The functions of a plugin, which has a separate libdso. */
struct plugin {
  void *handle;
  dso_module *(*load)(const char *);
  const char *(*error)(void);
  void (*release)(dso_module *);
  int64_t (*call)(dso_module *, const char *, int64_t, const char *);
  int (*give_name)(const char *, int64_t);
};
static const char *library;
static pthread_barrier_t barrier;

static struct plugin plugin_open(const char *path) {
  struct plugin self = {dlopen(path, RTLD_NOW), 0, 0, 0, 0, 0};
  assert(self.handle);
  *(void **)&self.load = dlsym(self.handle, "plugin_load");
  *(void **)&self.error = dlsym(self.handle, "plugin_error");
  *(void **)&self.release = dlsym(self.handle, "plugin_release");
  *(void **)&self.call = dlsym(self.handle, "plugin_call");
  *(void **)&self.give_name = dlsym(self.handle, "plugin_register");
  return self;
}

static int who(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  (void)handle, (void)args, (void)count;
  *result = dso_int(1);
  return 0;
}

/* Raise an error in the plugin's libdso; the thread ends after the plugin was closed. */
static void *fail_and_wait(void *argument) {
  struct plugin *plugin = argument;
  dso_module *module = plugin->load(library);
  assert(plugin->call(module, "add", 0, "x") == -1 && strstr(plugin->error(), "expected an int"));
  plugin->release(module);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier); /* the plugin is closed here */
  return NULL;
}

static void use_both(struct plugin *plugin, dso_module *mine, dso_module *other) {
  dso_any result, args[] = {dso_int(40), dso_int(2)};
  for (int i = 0; i < 2; i++) {
    assert(dso_module_call(mine, "add", &result, args, 2) == 0 && result.v_int64 == 42);
    assert(plugin->call(other, "add", 40, NULL) == 42);
    assert(dso_module_call(mine, "who", &result, args, 2) == 0 && result.v_int64 == 1);
    assert(plugin->call(other, "who", 40, NULL) == 2);
    assert(dso_load("/none", NULL) == NULL && strstr(dso_last_error(), "/none"));
    assert(plugin->call(other, "missing", 0, NULL) == -1);
    assert(strstr(dso_last_error(), "/none") && strstr(plugin->error(), "missing"));
  }
}

int main(int count, char **paths) {
  pthread_t thread;
  dso_function *function = dso_function_new(who, NULL, NULL);
  struct plugin plugin = plugin_open(paths[1]);
  library = paths[3];
  assert(count == 4 && dso_register_function("test.who", function) == 0);
  assert(plugin.give_name("test.who", 2) == 0 && plugin.give_name("test.who", 3) == -1);
  dso_module *mine = dso_load(paths[2], NULL), *other = plugin.load(library);
  assert(mine && other);
  use_both(&plugin, mine, other);
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, fail_and_wait, &plugin);
  pthread_barrier_wait(&barrier);
  plugin.release(other);
  assert(dlclose(plugin.handle) == 0);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  struct plugin again = plugin_open(paths[1]);
  other = again.load(library);
  assert(again.call(other, "add", 40, NULL) == 42);
  again.release(other);
  dlclose(again.handle);
  dso_module_release(mine);
  dso_function_release(function);
  return 0;
}
"""


@pytest.fixture(scope="module")
def two_copies(folder) -> Path:
    """A program with libdso.a."""
    source = folder / "two.c"
    source.write_text(TWO)
    command = ["cc", "-std=gnu11", "-rdynamic", f"-I{INCLUDE}", source, "-o", folder / "two"]
    subprocess.run([*command, *STATIC], check=True)
    return folder / "two"


@pytest.mark.parametrize("plugin", ["shared", "static"])
def test_two_copies_share_nothing(plugin, two_copies, folder) -> None:
    """Functions and errors are apart, and a closed copy leaves nothing that a thread would call."""
    command = [two_copies, folder / f"plugin_{plugin}.so", folder / "libdso.so", folder / "same.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")

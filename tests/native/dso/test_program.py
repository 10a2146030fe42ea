"""C programs without Python load what packer exports, under ASan and UBSan, without leaks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from ...support.compile import compile_c
from ...support.libdso import SANITIZE, compile_program, run_program
from ...support.paths import C_SOURCES
from ...support.system_models import model

START = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dso.h"

static inline void check(int is_good) {
  if (is_good) return;
  printf("failed: %s\\n", dso_last_error());
  exit(1);
}
static inline dso_module *load(const char *path) {
  dso_module *module = dso_load(path, NULL);
  check(module != NULL);
  return module;
}
static inline int call(dso_module *module, const char *name, int a, int b) {
  dso_any result, args[2];
  args[0] = dso_int(a), args[1] = dso_int(b);
  check(dso_module_call(module, name, &result, args, 2) == 0);
  return (int)result.v_int64;
}
"""


def run(folder: Path, body: str, *arguments: object, before: str = "") -> list[str]:
    """Compile and run main's body; return the lines that it prints."""
    source = (
        f"{START}{before}\nint main(int argc, char **argv) {{\n(void)argc;\n{body}\nreturn 0;}}"
    )
    program = compile_program(source, folder / "program", *SANITIZE)
    return run_program(program, *arguments).splitlines()


def source(text: str, **functions: str) -> packer.CSourceModule:
    """A module of C text."""
    return packer.CSourceModule(text, functions=functions)


@pytest.fixture(scope="module")
def add(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with an entry, and one more function."""
    module = source(
        "int add(int a, int b) { return a + b; }\ndouble twice(double x) { return 2 * x; }",
        add="int(int a, int b)",
        twice="double(double x)",
    )
    return packer.export_library(module, tmp_path_factory.mktemp("add") / "add.so", entry="twice")


HOST = (C_SOURCES / "host.c").read_text()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library whose code calls imported functions."""
    return compile_c(HOST, tmp_path_factory.mktemp("host") / "host.so", "-pthread")


def test_functions_and_errors(add, tmp_path) -> None:
    """Names, signatures and the entry; a function keeps its module; errors have kind and text."""
    body = """
      dso_module *m = load(argv[1]);
      dso_any result;
      printf("%s %s\\n", dso_module_type_key(m), dso_module_entry(m));
      check(dso_module_functions(m, show, NULL) == 0);
      int status = dso_module_call(m, "ad", &result, NULL, 0);
      printf("%d %s\\n", status, strchr(dso_last_error(), ';'));
      status = dso_module_call(m, "add", &result, NULL, 0);
      printf("%d %s\\n", status, dso_last_error());
      dso_function *f = dso_module_function(m, "add");
      dso_module_release(m);
      dso_any args[] = {dso_int(40), dso_int(2)};
      check(dso_function_call(f, &result, args, 2) == 0);
      printf("%d\\n", (int)result.v_int64);
      dso_function_release(f);
      printf("%s\\n", dso_load("no.so", NULL) == NULL ? dso_last_error_kind() : "");
    """
    show = """
      static int show(void *context, const char *name, const char *signature) {
        (void)context;
        printf("%s: %s\\n", name, signature ? signature : "-");
        return 0;
      }
    """
    with pytest.raises(TypeError) as refused:
        runtime.load(add)["add"]()
    lines = run(tmp_path, body, add, before=show)
    assert lines[:5] == [
        "library twice",
        "add: int(int a, int b)",
        "main: -",
        "twice: double(double x)",
        "-1 ; near names: 'add'",
    ]
    assert lines[5].startswith("-1 TypeError: add: ")
    assert "2 arguments" in str(refused.value)
    assert lines[6:] == ["42", "LibraryLoadError"]


def test_one_file_is_one_tree(add, tmp_path) -> None:
    """While it is in use; equal bytes are the same tree too."""
    body = """
      static char bytes[1 << 20];
      FILE *file = fopen(argv[1], "rb");
      size_t nbytes = fread(bytes, 1, sizeof bytes, file);
      fclose(file);
      dso_module *m = load(argv[1]), *again = load(argv[1]);
      dso_module *same = dso_load_bytes(bytes, nbytes, NULL);
      printf("%d %d\\n", m == again, m == same);
      dso_module_release(m), dso_module_release(again), dso_module_release(same);
      dso_module *alone = dso_load_bytes(bytes, nbytes, NULL);
      printf("%d\\n", call(alone, "add", 1, 2));
      dso_module_release(alone);
      bytes[0] = 'x';
      printf("%s\\n", dso_load_bytes(bytes, nbytes, NULL) == NULL ? dso_last_error() : "");
    """
    lines = run(tmp_path, body, add)
    assert lines[:2] == ["1 1", "3"]
    data = b"x" + add.read_bytes()[1:]
    with pytest.raises(runtime.LibraryLoadError) as refused:
        runtime.load_from_bytes(data)
    assert lines[2] == f"LibraryLoadError: {refused.value}"


def test_verification(add, tmp_path) -> None:
    """The program sees the bytes before any code runs, also the bytes of a tree that is in use."""
    before = """
      static int verify(void *context, const char *path, const void *bytes, size_t nbytes) {
        printf("%s %d %.3s\\n", path ? "path" : "bytes", nbytes > 1000, (const char *)bytes + 1);
        return *(int *)context ? dso_set_error("ValueError", "not signed") : 0;
      }
    """
    body = """
      int is_refused = 1;
      dso_options options = {sizeof options, verify, &is_refused, 0, 0, 0, 0, 0, 0};
      printf("%s\\n", dso_load(argv[1], &options) == NULL ? dso_last_error() : "");
      is_refused = 0;
      dso_module *m = dso_load(argv[1], &options);
      check(m != NULL);
      is_refused = 1;
      printf("%s\\n", dso_load(argv[1], &options) == NULL ? dso_last_error() : "");
      dso_module_release(m);
    """
    lines = run(tmp_path, body, add, before=before)
    refused = ["path 1 ELF", "ValueError: not signed"]
    assert lines == [*refused, "path 1 ELF", *refused]


def test_options_of_the_process(add, tmp_path) -> None:
    """The number of threads holds for all loads; devices for one tree."""
    body = """
      DLDevice cuda = {2, 0};
      dso_options options = {sizeof options, 0, 0, 0, 0, 2, 0, 0, 0};
      dso_module *m = dso_load(argv[1], &options);
      check(m != NULL);
      options.num_threads = 3;
      printf("%s\\n", dso_load(argv[1], &options) == NULL ? dso_last_error() : "");
      options.num_threads = 0, options.devices = &cuda, options.num_devices = 1;
      printf("%s\\n", dso_load(argv[1], &options) == NULL ? dso_last_error_kind() : "");
      dso_module_release(m);
    """
    text = "num_threads, expected 2, as in an earlier load or parallel loop, found 3"
    assert run(tmp_path, body, add) == [f"ValueError: dso_options: {text}", "ValueError"]


def test_imports_of_host_code(host, add, tmp_path) -> None:
    """Host code finds imports, then global functions; what it keeps does not keep libraries."""
    before = """
      static int seven(void *handle, const dso_any *args, int32_t count, dso_any *result) {
        (void)args, (void)count;
        *result = dso_int(*(int *)handle);
        return 0;
      }
      static int use(dso_module *host, const char *name, const char *argument) {
        dso_any result, args[3];
        args[0] = dso_string(argument), args[1] = dso_int(40), args[2] = dso_int(2);
        if (dso_module_call(host, name, &result, args, 3) == 0) return (int)result.v_int64;
        printf("%s\\n", strstr(dso_last_error(), "its host"));
        return -1;
      }
      static int is_mapped(const char *path) {
        char line[4096];
        int found = 0;
        FILE *maps = fopen("/proc/self/maps", "r");
        while (fgets(line, sizeof line, maps)) found |= strstr(line, path) != NULL;
        fclose(maps);
        return found;
      }
    """
    body = """
      int number = 7;
      dso_module *host = load(argv[1]), *added = load(argv[2]);
      printf("%d\\n", use(host, "call", "add"));
      check(dso_module_import(host, added) == 0);
      printf("%d\\n", dso_module_import(added, host));
      printf("%s\\n", dso_last_error());
      dso_module_release(added);
      printf("%d %d\\n", use(host, "call", "add"), use(host, "call_in_thread", "add"));
      (void)use(host, "remember", "add");
      printf("%d\\n", use(host, "call", "seven"));
      dso_function *function = dso_function_new(seven, &number, NULL);
      check(dso_register_function("seven", function) == 0);
      printf("%d ", dso_register_function("seven", function));
      printf("%s\\n", dso_last_error());
      dso_function_release(function);
      printf("%d\\n", use(host, "call", "seven"));
      dso_module_release(host);
      printf("%d %d\\n", is_mapped(argv[1]), is_mapped(argv[2]));
    """
    missing = "which is neither a function of its imports nor a global function"
    names = "; it has: 'add', 'main', 'twice'"
    assert run(tmp_path, body, host, add, before=before) == [
        f"its host code calls 'add', {missing}",
        "-1",
        "-1",
        "ExportError: importing module 'library' into module 'library' would make a cycle",
        "42 42",
        f"its host code calls 'seven', {missing}{names}",
        "-1",
        "-1 ValueError: global function 'seven' is already registered",
        "7",
        "0 0",
    ]


def test_threads_load_and_call(host, add, tmp_path) -> None:
    """Threads load, import, call and release the same libraries."""
    before = """
      static char **paths;
      static void *work(void *unused) {
        for (int i = 0; i < 50; i++) {
          dso_module *host = load(paths[1]), *added = load(paths[2]);
          dso_any result, args[3];
          args[0] = dso_string("add"), args[1] = dso_int(40), args[2] = dso_int(2);
          check(dso_module_import(host, added) == 0);
          dso_module_release(added);
          check(dso_module_call(host, "call", &result, args, 3) == 0 && result.v_int64 == 42);
          dso_module_release(host);
        }
        return unused;
      }
    """
    body = """
      pthread_t threads[4];
      paths = argv;
      for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
      for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
      puts("done");
    """
    assert run(tmp_path, body, host, add, before=before) == ["done"]


def test_own_type(pack_blob, tmp_path) -> None:
    """A loader of the program reads a payload, and finds functions, which keep the module."""
    from runtime.blob import Blob, Entry, dump
    from runtime.modules.opaque import OpaqueModule

    note = OpaqueModule("doc.note", memoryview(b"\x03abc"))
    tree = Blob([Entry("_lib", None), Entry("doc.note", note), Entry("_import_tree", None)],
                (0, 1, 1), (1,))  # fmt: skip
    path = pack_blob(b"".join(bytes(chunk) for chunk in dump(tree)))
    before = """
      static int ended;
      static int load_note(const void *bytes, size_t nbytes, size_t *used, void **self) {
        const char *text = (const char *)bytes;
        *used = (size_t)text[0] + 1;
        if (nbytes < *used) return dso_set_error("ValueError", "a short note");
        *self = (void *)text;
        return 0;
      }
      static int size(void *handle, const dso_any *args, int32_t count, dso_any *result) {
        (void)args, (void)count;
        *result = dso_int(*(char *)handle);
        return 0;
      }
      static int find(void *self, const char *name, dso_function **function) {
        if (strcmp(name, "size") != 0) return 0;
        *function = dso_function_new(size, self, NULL);
        return 1;
      }
      static void end(void *self) { (void)self, ended++; }
    """
    body = """
      dso_type note = {sizeof note, "doc.note", load_note, find, end};
      dso_any result;
      printf("%s\\n", dso_load(argv[1], NULL) == NULL ? dso_last_error() : "");
      check(dso_register_loader(&note) == 0);
      printf("%d ", dso_register_loader(&note));
      printf("%s\\n", dso_last_error());
      dso_module *m = load(argv[1]);
      dso_function *f = dso_module_function(m, "size");
      dso_module_release(m);
      check(f && dso_function_call(f, &result, NULL, 0) == 0);
      printf("%d %d ", (int)result.v_int64, ended);
      dso_function_release(f);
      printf("%d\\n", ended);
    """
    lines = run(tmp_path, body, path, before=before)
    with pytest.raises(runtime.LoaderNotFoundError) as refused:
        runtime.load(path)
    assert (
        lines[0].partition("; known")[0]
        == (f"LoaderNotFoundError: {refused.value}".partition("; known")[0])
    )
    assert lines[1:] == ["-1 ValueError: type key 'doc.note' already has a loader", "3 0 1"]


def test_models_in_the_program(tmp_path) -> None:
    """Two models are linked into a program; their imports are in the tree."""
    (tmp_path / "made").mkdir()
    objects = [model(tmp_path / "made", 1), model(tmp_path / "made", 2)]
    text = """
    #define DSO_SYSTEM_LIB_IMPLEMENTATION
    #include "dso_packer_system_lib.h"
    """
    body = """
      for (int i = 1; i < argc; i++) {
        dso_module *const *imports;
        dso_any result, args[] = {dso_int(40), dso_int(2)};
        dso_module *m = dso_system_library(argv[i]);
        check(m != NULL);
        size_t count = dso_module_imports(m, &imports);
        printf("%d %s ", (int)count, count ? dso_module_type_key(imports[0]) : "-");
        int status = dso_module_call(m, "add", &result, args, 2);
        if (status == 0) printf("%d\\n", (int)result.v_int64);
        else printf("%s\\n", dso_last_error());
        dso_module_release(m);
      }
    """
    whole = f"{text}{START}\nint main(int argc, char **argv) {{{body}return 0;}}"
    (tmp_path / "program.c").write_text(whole)
    home = Path(runtime.__file__).parent
    command = ["cc", "-std=c99", f"-I{home / 'include'}", "program.c", *map(str, objects)]
    command += [str(home / "lib" / "libdso.a"), "-o", "program", "-pthread", "-ldl", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    made = tmp_path / "program"
    assert run_program(made, "net1_", "net2_", "net3_").splitlines() == [
        "1 cuda 42",
        "1 cuda 82",
        "0 - FunctionNotFoundError: system library 'net3_': no function 'add' in its tree; nothing "
        "is registered under this prefix; link or load what `packer export --system-lib` made with "
        "it",
    ]

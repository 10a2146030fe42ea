"""Opening and closing libraries: what is refused, what is loaded, who keeps whom alive."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from runtime._core import ElfFile, Library
from runtime.error import LibraryLoadError

CompileLibrary = Callable[..., Path]

ADD = """
#include "dso_packer.h"
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
DSO_EXPORT const char blob[] = "1234567";
DSO_EXPORT int __tvm_ffi_answer(void *h, const dso_any *args, int32_t n, dso_any *result) {
  (void)h, (void)args, (void)n;
  result->type_index = DSO_INT;
  result->v_int64 = ANSWER;
  return 0;
}
"""


@pytest.fixture
def library_file(compile_library: CompileLibrary, tmp_path: Path) -> Path:
    """A fresh copy of a small library whose `answer` is 1."""
    return Path(shutil.copy(compile_library(ADD, "-DANSWER=1"), tmp_path / "lib.so"))


def _answer(library: Library) -> int:
    function = library.function("answer", None)
    assert function is not None
    return int(function())


def _is_mapped(path: Path) -> bool:
    return any(str(path) in line for line in Path("/proc/self/maps").read_text().splitlines())


# ---- who keeps whom alive


def test_last_reference_closes_the_library(library_file: Path) -> None:
    """It is closed when the Library goes, and not before."""
    library = Library(str(library_file))
    assert _is_mapped(library_file)
    del library
    assert not _is_mapped(library_file)


def test_view_keeps_the_library_open(library_file: Path) -> None:
    """The bytes behind a memoryview stay mapped, slices included."""
    view = Library(str(library_file)).data("blob")
    assert view is not None
    part = view[3:5]
    assert (bytes(view), view.readonly, view.format) == (b"1234567\0", True, "B")
    del view
    assert _is_mapped(library_file)
    assert bytes(part) == b"45"
    del part
    assert not _is_mapped(library_file)


def test_function_keeps_library_and_owner(library_file: Path) -> None:
    """A Function is all that is needed to call."""

    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    function = Library(str(library_file)).function("answer", owner)
    del owner
    assert function is not None
    assert (function(), function.owner) == (1, gone())
    del function
    assert (gone(), _is_mapped(library_file)) == (None, False)


def test_cycle_through_the_owner_is_collected(library_file: Path) -> None:
    """An owner that caches its functions does not keep the library for ever."""

    class Owner:
        function: object = None

    owner = Owner()
    owner.function = Library(str(library_file)).function("answer", owner)
    del owner
    gc.collect()
    assert not _is_mapped(library_file)


def test_load_and_unload_leave_nothing(library_file: Path) -> None:
    """Neither descriptors nor maps grow over many rounds."""

    def count() -> tuple[int, int]:
        maps = Path("/proc/self/maps").read_text()
        return len(os.listdir("/proc/self/fd")), maps.count(str(library_file))

    before = count()
    for _ in range(100):
        assert _answer(Library(str(library_file))) == 1
    assert count() == before


# ---- which file


def test_key_is_that_of_the_file(library_file: Path) -> None:
    """Device, inode, size and time tell one file from another."""
    status = library_file.stat()
    expected = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    library = Library(os.fsencode(library_file))
    assert (library.key, library.path) == (expected, str(library_file))


def test_same_file_by_another_name_is_one_image(library_file: Path, tmp_path: Path) -> None:
    """A hard link and a second opening share the variables of the first."""
    os.link(library_file, tmp_path / "link.so")
    paths = [library_file, library_file, tmp_path / "link.so"]
    views = [Library(str(path)).data("blob") for path in paths]
    assert len({np.frombuffer(view, "u1").ctypes.data for view in views if view}) == 1


def test_new_file_at_an_old_path_is_new_code(
    compile_library: CompileLibrary, library_file: Path
) -> None:
    """Each replacement is loaded beside those that are still open, and found again."""
    libraries = []
    for answer in range(1, 6):
        made = compile_library(ADD, f"-DANSWER={answer}")
        fresh = library_file.with_name("fresh.so")
        shutil.copy(made, fresh)
        os.replace(fresh, library_file)
        libraries += [Library(str(library_file)), Library(str(library_file))]
    assert [_answer(library) for library in libraries] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    del libraries
    assert not _is_mapped(library_file)


def test_origin_is_the_folder_of_the_library(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """A dependency beside the library is found, also under the second spelling."""
    needed = compile_library("int needed(void) { return 1; }", "-Wl,-soname,libneeded.so")
    shutil.copy(needed, tmp_path / "libneeded.so")
    source = "int needed(void); int use(void) { return needed(); } int v%d;"
    for version in range(2):
        made = compile_library(
            source % version, str(tmp_path / "libneeded.so"), "-Wl,-rpath,$ORIGIN"
        )
        shutil.copy(made, tmp_path / "fresh.so")
        os.replace(tmp_path / "fresh.so", tmp_path / "lib.so")
        library = Library(str(tmp_path / "lib.so"))
        assert _is_mapped(tmp_path / "libneeded.so")
    del library


def test_bare_name_is_a_file_here(
    library_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """E5: the working directory counts, the library search path never."""
    monkeypatch.chdir(tmp_path)
    assert _answer(Library("lib.so")) == 1
    assert Library("lib.so").path == str(library_file)
    with pytest.raises(
        LibraryLoadError, match=r"/libc\.so\.6: cannot open: No such file"
    ) as caught:
        Library("libc.so.6")
    assert caught.value.reason == "io"


@pytest.mark.parametrize(
    "name", [b"with space.so", "ümläut 🐢.so".encode(), b"\xff\xfe.so", b"-rf.so", b"$(x)'\".so"]
)
def test_any_file_name_works(library_file: Path, tmp_path: Path, name: bytes) -> None:
    """E1, E2, E4: names are bytes, and go both ways."""
    path = os.path.join(os.fsencode(tmp_path), name)
    os.rename(library_file, path)
    assert _answer(Library(path)) == _answer(Library(os.fsdecode(path))) == 1
    assert os.fsencode(Library(path).path) == path


def test_unprintable_path_is_quoted() -> None:
    """E1: no control character reaches a terminal through a message."""
    with pytest.raises(LibraryLoadError, match=r"^'/no\\nsuch\\x1b\\udcff': cannot open") as caught:
        Library(b"/no\nsuch\x1b\xff")
    assert caught.value.path == "/no\nsuch\x1b\udcff"


def test_nul_in_a_path_is_a_value_error() -> None:
    """E3."""
    with pytest.raises(ValueError, match="embedded null"):
        Library("a\0b")


# ---- what is no library


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "a directory"),
        (".", "a directory"),
        ("..", "a directory"),
        ("/dev/null", "a character device"),
        ("/dev/zero", "a character device"),
        ("/dev/full", "a character device"),
    ],
)
@pytest.mark.parametrize("opener", [Library, ElfFile])
def test_not_a_regular_file(opener: type, path: str, kind: str) -> None:
    """E6, E7: what stands there is named."""
    with pytest.raises(LibraryLoadError, match=f": not a regular file, found {kind}$") as caught:
        opener(path)
    assert caught.value.reason == "not-a-file"


def test_fifo_and_socket_do_not_block(tmp_path: Path) -> None:
    """E7: a FIFO that nobody writes, a socket that nobody serves."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name, kind in (("fifo", "a FIFO"), ("socket", "a socket")):
            with pytest.raises(LibraryLoadError, match=f"found {kind}$") as caught:
                Library(str(tmp_path / name))
            assert caught.value.reason == "not-a-file"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("missing.so", "cannot open: No such file or directory"),
        ("lib.so/", "cannot open: Not a directory"),
        ("loop", "cannot open: Too many levels of symbolic links"),
        ("x" * 256, "cannot open: File name too long"),
        ("x/" * 2048, "cannot open: File name too long"),
    ],
)
def test_file_that_cannot_be_opened(library_file: Path, name: str, expected: str) -> None:
    """E6, E12: the system's own words, and the path."""
    (library_file.parent / "loop").symlink_to("loop")
    path = f"{library_file.parent}/{name}"
    with pytest.raises(LibraryLoadError) as caught:
        Library(path)
    assert (str(caught.value), caught.value.reason) == (f"{path}: {expected}", "io")
    assert caught.value.path == path


def test_unreadable_file_is_refused(library_file: Path) -> None:
    """E11: said by the system; root is asked as somebody else, since it may read anything."""
    library_file.chmod(0)
    code = f"""
import os
from runtime._core import Library
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    Library({str(library_file)!r})
except OSError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{library_file}: cannot open: Permission denied\n"


def test_empty_path_is_refused() -> None:
    """E6."""
    with pytest.raises(LibraryLoadError, match=r"^'': expected a path, found an empty one$"):
        Library("")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text " * 100])
def test_content_is_checked_before_dlopen(tmp_path: Path, content: bytes) -> None:
    """The words are those of the static check, not of the dynamic loader."""
    path = tmp_path / "bad.so"
    path.write_bytes(content)
    with pytest.raises(LibraryLoadError, match=f"^{path}: ") as caught:
        Library(str(path))
    assert caught.value.reason in ("not-elf", "truncated")


def test_proc_self_mem_is_refused() -> None:
    """E7: a regular file of size 0 by its status."""
    with pytest.raises(LibraryLoadError):
        Library("/proc/self/mem")


def test_undefined_symbol_is_named(compile_library: CompileLibrary) -> None:
    """C19: all symbols are bound at once, and the missing one is named."""
    path = compile_library("int nowhere(void); int f(void) { return nowhere(); }")
    with pytest.raises(LibraryLoadError, match=f"^{path}: undefined symbol: nowhere$") as caught:
        Library(str(path))
    assert caught.value.reason == "dlopen"


def test_missing_dependency_is_named(compile_library: CompileLibrary, tmp_path: Path) -> None:
    """C15: the library that cannot be found is named."""
    gone = compile_library("int gone(void) { return 1; }", "-Wl,-soname,libgone.so")
    path = compile_library("int gone(void); int f(void) { return gone(); }", str(gone))
    with pytest.raises(LibraryLoadError, match=f"^{path}: libgone.so: cannot open") as caught:
        Library(str(path))
    assert caught.value.reason == "dlopen"


TOUCHES_ITSELF = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((constructor)) static void touch(void) {
  struct timespec times[2] = {{0, 0}, {rand() & 0xfffff, 0}};
  if (unlink(getenv("ONCE")) == 0 || getenv("ALWAYS"))
    utimensat(AT_FDCWD, getenv("TOUCHED"), times, 0);
}
"""


def test_file_replaced_while_it_is_opened(
    compile_library: CompileLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changes once is opened anew; one that never rests is busy."""
    path = Path(shutil.copy(compile_library(TOUCHES_ITSELF), tmp_path / "lib.so"))
    (tmp_path / "once").touch()
    monkeypatch.setenv("TOUCHED", str(path))
    monkeypatch.setenv("ONCE", str(tmp_path / "once"))
    assert Library(str(path)).key[3] == path.stat().st_mtime_ns
    monkeypatch.setenv("ALWAYS", "1")
    with pytest.raises(LibraryLoadError, match="replaced 8 times while it was opened") as caught:
        Library(str(path))
    assert (caught.value.reason, _is_mapped(path)) == ("busy", False)


# ---- whose symbols


def test_symbols_of_a_dependency_are_not_the_librarys(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """C15: blob and functions are looked up in this very object, where dlsym would go on."""
    inner = compile_library(ADD, "-DANSWER=1", "-Wl,-soname,libinner.so")
    shutil.copy(inner, tmp_path / "libinner.so")
    link = (str(tmp_path / "libinner.so"), "-Wl,--no-as-needed", f"-Wl,-rpath,{tmp_path}")
    without = Library(str(compile_library("int own;", *link)))
    assert (without.data("blob"), without.function("answer", None)) == (None, None)
    with_own = Library(str(compile_library(ADD, "-DANSWER=2", *link)))
    assert _answer(with_own) == 2
    assert _answer(Library(str(tmp_path / "libinner.so"))) == 1


SYMBOLS = """
const char good[4] = "abc";
char writable[4] = "abc";
char zeros[4096];
_Thread_local char local[4] = "abc";
int function(void) { return 1; }
extern const char nothing[];
extern const char absolute[];
asm(".section .rodata; .globl nothing; .type nothing, @object; nothing: .size nothing, 0; .text");
asm(".globl absolute; .type absolute, @object; absolute = 0x40; .size absolute, 8");
"""


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("writable", "lies in a writable segment, expected a read-only one"),
        ("zeros", "has no file bytes behind it"),
        ("local", "is not plain data"),
        ("function", "is a function, expected data"),
        ("nothing", "has size 0"),
        ("absolute", "is an absolute value, expected data"),
    ],
)
def test_symbol_that_is_no_constant_data(
    compile_library: CompileLibrary, symbol: str, expected: str
) -> None:
    """A16: a blob lies in the file-backed, read-only part, or is refused by name."""
    library = Library(str(compile_library(SYMBOLS)))
    with pytest.raises(LibraryLoadError, match=f": {symbol} at 0x[0-9a-f]+: {expected}") as caught:
        library.data(symbol)
    assert caught.value.reason == "blob"


def test_symbol_that_is_no_function(compile_library: CompileLibrary) -> None:
    """Data under a function's name is not called."""
    library = Library(str(compile_library("const char __tvm_ffi_f[8] = {1}; char __tvm_ffi_g;")))
    for name in "fg":
        with pytest.raises(LibraryLoadError, match=f"__tvm_ffi_{name} at 0x.*function") as caught:
            library.function(name, None)
        assert caught.value.reason == "malformed"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "first line, expected 'packer-function 1'"),
        ("packer-function 2\\n", "first line, expected 'packer-function 1'"),
        ("packer-function 1\\ngil perhaps\\n", "gil, expected release or keep"),
        ("packer-function 1\\ntype void\\n", "type, expected a C declaration"),
        ("packer-function 1\\nparams x\\n", "params, expected name:code"),
        ("packer-function 1\\nparams :i8\\n", "params, expected name:code"),
        ("packer-function 1\\nparams x:i8  y:i8\\n", "params, expected name:code"),
        ("packer-function 1\\nparams x:i8\\nparams x:i8\\n", "params given twice"),
        ("packer-function 1\\ndoc \\xff\\n", "expected UTF-8 text"),
        ("packer-function 1\\n\\0doc\\n", "expected text that ends with its only NUL"),
    ],
)
def test_malformed_facts_are_refused(
    compile_library: CompileLibrary, text: str, expected: str
) -> None:
    """The function is not called by facts that cannot be read."""
    source = f'int __tvm_ffi_f(void) {{ return 0; }} const char __packer_fn_f[] = "{text}";'
    library = Library(str(compile_library(source)))
    with pytest.raises(LibraryLoadError, match=f": __packer_fn_f: {expected}$") as caught:
        library.function("f", None)
    assert caught.value.reason == "malformed"


def test_facts_without_nul_or_in_writable_memory(compile_library: CompileLibrary) -> None:
    """The text ends within its symbol, and nobody can change it."""
    source = "int __tvm_ffi_f(void) { return 0; } int __tvm_ffi_g(void) { return 0; }"
    source += 'const char __packer_fn_f[3] = "pac"; char __packer_fn_g[] = "packer-function 1\\n";'
    library = Library(str(compile_library(source)))
    with pytest.raises(LibraryLoadError, match="__packer_fn_f: expected text that ends with its"):
        library.function("f", None)
    with pytest.raises(LibraryLoadError, match=r"__packer_fn_g at 0x.* writable segment"):
        library.function("g", None)


@pytest.mark.parametrize(
    ("declared", "signature"),
    [
        ("void(void)", "void f(void)"),
        ("const char *(int x)", "const char *f(int x)"),
        ("(void)", " f(void)"),
    ],
)
def test_signature_has_the_name_in_its_place(
    compile_library: CompileLibrary, declared: str, signature: str
) -> None:
    """The declaration reads as C."""
    source = "int __tvm_ffi_f(void) { return 0; }"
    source += f'const char __packer_fn_f[] = "packer-function 1\\ntype {declared}\\n";'
    function = Library(str(compile_library(source))).function("f", None)
    assert function is not None
    assert function.signature == signature


CONTEXT = """
#include "dso_packer.h"
static void other(const char *kind, const char *message) { (void)kind, (void)message; }
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *) = VALUE;
DSO_EXPORT int __tvm_ffi_f(void *h, const dso_any *args, int32_t n, dso_any *result) {
  (void)h, (void)args, (void)n, (void)other;
  result->type_index = DSO_INT;
  result->v_int64 = __TVMFFIErrorSetRaisedFromCStr != 0;
  if (__TVMFFIErrorSetRaisedFromCStr == other) result->v_int64 = 2;
  return 0;
}
"""


@pytest.mark.parametrize(("value", "found"), [("0", 1), ("other", 2)])
def test_context_symbol_is_filled_once(
    compile_library: CompileLibrary, value: str, found: int
) -> None:
    """The error setter is put where nobody put one before."""
    library = Library(str(compile_library(CONTEXT, f"-DVALUE={value}")))
    function = library.function("f", None)
    assert function is not None
    assert function() == found


@pytest.mark.parametrize(
    "source",
    [
        "void *const __TVMFFIErrorSetRaisedFromCStr = 0;",
        "int __TVMFFIErrorSetRaisedFromCStr;",
        "void __TVMFFIErrorSetRaisedFromCStr(void) {}",
        "_Thread_local void *__TVMFFIErrorSetRaisedFromCStr;",
    ],
)
def test_context_symbol_that_is_no_variable_is_left(
    compile_library: CompileLibrary, source: str
) -> None:
    """Constants, small variables, functions and thread-local ones are not written to."""
    Library(str(compile_library(source + "int other_symbol;")))


# ---- threads


def test_many_threads_open_and_close(compile_library: CompileLibrary, library_file: Path) -> None:
    """G10, G11: the same and different files, opened, called and dropped at once."""
    paths = [library_file, *(compile_library(ADD, f"-DANSWER={n}") for n in (2, 3, 4))]
    found: list[bool] = []

    def run(number: int) -> None:
        for turn in range(50):
            index = (number + turn) % len(paths)
            found.append(_answer(Library(str(paths[index]))) == index + 1)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * (16 * 50)


def test_small_stack_and_signals(library_file: Path) -> None:
    """G19, G20: neither a small thread stack nor a shower of signals disturbs a load."""
    found: list[int] = []

    def run() -> None:
        found.extend(_answer(Library(str(library_file))) for _ in range(300))

    before = threading.stack_size(64 * 1024)
    handler = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        run()
        thread.join()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        threading.stack_size(before)
    assert found == [1] * 600


def test_forked_child_calls_and_loads(library_file: Path) -> None:
    """G9: what was loaded before a fork works after it in both processes."""
    library = Library(str(library_file))
    child = os.fork()
    if child == 0:
        os._exit(_answer(library) + _answer(Library(str(library_file))))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert _answer(library) == 1


def test_file_without_a_name(library_file: Path) -> None:
    """Bytes in memory are a file too; a descriptor number that is used again is another one."""
    for _ in range(2):
        descriptor = os.memfd_create("library")
        try:
            os.write(descriptor, library_file.read_bytes())
            library = Library(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        assert _answer(library) == 1


LOADS_ANOTHER = """
int PyGILState_Ensure(void);
void PyGILState_Release(int);
int PyRun_SimpleString(const char *);
__attribute__((constructor)) static void load(void) {
  int state = PyGILState_Ensure();
  PyRun_SimpleString("import runtime._core, os; runtime._core.Library(os.environ['ANOTHER'])");
  PyGILState_Release(state);
}
int loads_another;
"""


def test_constructor_may_load_another_library(
    compile_library: CompileLibrary, library_file: Path
) -> None:
    """The loader's lock can be taken again by the thread that has it."""
    path = compile_library(LOADS_ANOTHER)
    code = f"from runtime._core import Library; print(Library({str(path)!r}).path)"
    environment = {**os.environ, "ANOTHER": str(library_file)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == (f"{path}\n", "")


# ---- ElfFile


def test_elf_file_says_where_in_the_file(compile_library: CompileLibrary) -> None:
    """A symbol is an offset and a size in the file, without loading it."""
    path = compile_library(SYMBOLS)
    elf = ElfFile(str(path))
    found = elf.symbol("good")
    assert found is not None
    offset, nbytes = found
    assert path.read_bytes()[offset : offset + nbytes] == b"abc\0"
    assert elf.symbol("absent") is None
    with pytest.raises(LibraryLoadError, match=r"zeros at 0x.*no file bytes behind it") as caught:
        elf.symbol("zeros")
    assert caught.value.reason == "blob"


def test_elf_file_checks_the_machine(library_file: Path) -> None:
    """The machine is this one unless the caller names another."""
    native = ElfFile(str(library_file)).machine
    assert ElfFile(str(library_file), machine=native).machine == native
    with pytest.raises(LibraryLoadError) as caught:
        ElfFile(str(library_file), 8)
    assert caught.value.reason == "machine"
    with pytest.raises(ValueError, match="machine, expected 0 to 65535, found 65536"):
        ElfFile(str(library_file), 65536)

"""Finding compilers, running them, and what is said when they misbehave (bad-input, part F)."""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from packer.toolchain.compiler import Compilation, compile_sources, compilers, find_compiler
from packer.toolchain.create import create_shared
from packer.toolchain.cross_toolchain import cross_compiler
from packer.toolchain.process import KEPT_NBYTES, run, run_all
from runtime.error import ExportError, ToolchainError

GCC = shutil.which("gcc") or "gcc"


@pytest.fixture(autouse=True)
def no_compiler_variables(monkeypatch):
    """Every test says itself what CC, CXX and NVCC are."""
    for name in ("CC", "CXX", "NVCC"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def add_c(tmp_path):
    """A C source."""
    return write(tmp_path / "add.c", "int add(int a, int b) { return a + b; }\n")


def write(path: Path, text: str) -> Path:
    """Make a text file."""
    path.write_text(text)
    return path


def program(path: Path, text: str) -> str:
    """Write a shell script that plays a compiler."""
    write(path, "#!/bin/sh\n" + text).chmod(0o755)
    return str(path)


def compile_source(source, output, *, language, cwd, cc=None, options=(), include=()) -> Path:
    """Compile one source."""
    job = Compilation(source, output, language, tuple(options), tuple(include))
    (made,) = compile_sources([job], cwd=cwd, find=compilers(cc))
    return made


def compile_c(source: Path, **options) -> Path:
    """Compile a C source in a folder of its own."""
    cwd = source.parent / "private"
    cwd.mkdir(exist_ok=True)
    return compile_source(source, cwd / "made.o", language="c", cwd=cwd, **options)


def output_of(*command: str | Path) -> str:
    """What an outside tool prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# Finding


def test_finds_gcc_on_path():
    """Without a word from the user the compilers are those on PATH, by absolute path."""
    assert find_compiler("c") == (shutil.which("gcc"),)
    assert find_compiler("cc") == (shutil.which("g++"),)
    assert find_compiler("link") == (shutil.which("g++"),)


def test_argument_comes_before_variable_before_path(tmp_path, monkeypatch):
    """The argument wins, then the variable, then PATH."""
    monkeypatch.setenv("CC", program(tmp_path / "mine", ""))
    assert find_compiler("c") == (str(tmp_path / "mine"),)
    assert find_compiler("c", "gcc") == (shutil.which("gcc"),)


def test_variable_may_hold_options(monkeypatch):
    """CXX="g++ -DX='a b'" is split as a shell would."""
    monkeypatch.setenv("CXX", "g++ -DX='a b' -m64")
    assert find_compiler("cc") == (shutil.which("g++"), "-DX=a b", "-m64")


def test_path_with_spaces_is_one_word(tmp_path):
    """A compiler in a folder with spaces needs no quoting."""
    compiler = program(tmp_path / "my cc", "")
    assert find_compiler("c", compiler) == (compiler,)


def test_relative_compiler_is_made_absolute(tmp_path, monkeypatch):
    """The compiler starts in another folder, so a relative path is resolved here."""
    program(tmp_path / "mycc", "")
    monkeypatch.chdir(tmp_path)
    assert find_compiler("c", "./mycc -O3") == (str(tmp_path / "mycc"), "-O3")


def test_empty_variable_is_as_unset(monkeypatch):
    """CC= names no compiler."""
    monkeypatch.setenv("CC", " ")
    assert find_compiler("c") == (shutil.which("gcc"),)


@pytest.mark.parametrize("variable", ["CC", "CXX"])
def test_link_follows_the_users_compiler(tmp_path, monkeypatch, variable):
    """Either variable decides who links, so that its -m32 or --sysroot is there too."""
    monkeypatch.setenv(variable, program(tmp_path / "mine", "") + " -m32")
    assert find_compiler("link") == (str(tmp_path / "mine"), "-m32")


@pytest.mark.parametrize(
    ("language", "variable"), [("c", "CC"), ("cc", "CXX"), ("cu", "NVCC"), ("link", "CXX")]
)
def test_variable_that_names_nothing_is_an_error(monkeypatch, language, variable):
    """A wrong variable is named, not passed over."""
    monkeypatch.setenv(variable, "no-such-cc -O3")
    with pytest.raises(ToolchainError, match=f"{variable}='no-such-cc -O3': .* 'no-such-cc'"):
        find_compiler(language)


def test_argument_that_names_nothing_is_an_error():
    """A wrong argument likewise."""
    with pytest.raises(ToolchainError, match="cc='no-such-cc': there is no program"):
        find_compiler("c", "no-such-cc")


def test_unbalanced_quote_in_variable_is_an_error(monkeypatch):
    """What a shell could not read is refused with the reason."""
    monkeypatch.setenv("CC", "gcc '-DX")
    with pytest.raises(ToolchainError, match=r"CC=.*no closing quotation"):
        find_compiler("c")


@pytest.mark.parametrize(
    ("language", "tried", "advice"),
    [
        ("c", "gcc, clang, cc", "name one in CC"),
        ("cc", r"g\+\+, clang\+\+, c\+\+", "name one in CXX"),
        ("cu", "nvcc", "install the CUDA toolkit"),
        ("link", r"g\+\+, gcc, clang\+\+, clang, c\+\+, cc", "CXX or CC"),
    ],
)
def test_empty_path_lists_what_was_tried(monkeypatch, language, tried, advice):
    """Without any compiler the message says what was looked for and what to do."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolchainError, match=f"none of {tried} is on PATH; .*{advice}") as caught:
        find_compiler(language)
    assert caught.value.command == ()


# Compiling


def test_compiles_position_independent_object(add_c):
    """The defaults are -O2 -fPIC; readelf sees a relocatable object with the function."""
    made = compile_c(add_c)
    assert "REL (Relocatable file)" in output_of("readelf", "-h", made)
    assert " T add" in output_of("nm", made)


def test_language_wins_over_suffix(tmp_path):
    """A C++ source is one whatever its file is called."""
    source = write(tmp_path / "kernel.c", "template <class T> T f(T x);\nint g() { return 1; }\n")
    cwd = tmp_path
    made = compile_source(source, tmp_path / "made.o", language="cc", cwd=cwd)
    assert "_Z1gv" in output_of("nm", made)
    source = write(tmp_path / "kernel.cc", "int class(void) { return 1; }\n")
    made = compile_source(source, tmp_path / "made.o", language="c", cwd=cwd, cc="g++")
    assert " T class" in output_of("nm", made)


def test_options_and_include_reach_the_compiler(tmp_path):
    """Headers are found in include folders, and options come after the defaults."""
    write(tmp_path / "include dir.h", "")
    folder = tmp_path / "a folder"
    folder.mkdir()
    write(folder / "size.h", "#define SIZE 3\n")
    source = write(tmp_path / "a.c", '#include "size.h"\nint f(void) { return SIZE + MORE; }\n')
    assert compile_c(source, include=[folder], options=["-DMORE=1"]).is_file()


@pytest.mark.parametrize("name", ["a b.c", "-o.c", "@file.c", "-Wl,-z.c", "$(x).c", "ü\n'.c"])
def test_hostile_source_names(tmp_path, monkeypatch, name):
    """Names with spaces, a leading dash or at, commas, newlines are only names."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("int f(void) { return 1; }\n")
    private = tmp_path / "-private @ dir"
    private.mkdir()
    made = compile_source(Path(name), private / "@made.o", language="c", cwd=private)
    assert " T f" in output_of("nm", made)


def test_non_utf8_source_name(tmp_path):
    """A name that is no text is a name."""
    source = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.c"))
    assert compile_c(write(source, "int f(void) { return 1; }\n")).is_file()


def test_object_does_not_depend_on_the_private_folder(tmp_path):
    """With -g and __FILE__ the same source in two folders gives the same bytes."""
    made = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        source = write(tmp_path / name / "f.c", "const char *f(void) { return __FILE__; }\n")
        output = source.with_suffix(".o")
        compile_source(source, output, language="c", options=["-g"], cwd=source.parent)
        made.append(output.read_bytes())
    assert made[0] == made[1]


def test_several_sources_keep_their_order(tmp_path):
    """Objects come back in the order of their sources, whatever finishes first."""
    jobs = []
    for index in range(6):
        source = write(tmp_path / f"s{index}.c", f"int f{index}(void) {{ return {index}; }}\n")
        jobs.append(Compilation(source, tmp_path / f"o{index}.o", "c"))
    made = compile_sources(jobs, cwd=tmp_path)
    assert made == [job.output for job in jobs]
    assert all(f" T f{index}" in output_of("nm", path) for index, path in enumerate(made))


def test_first_bad_source_is_the_one_named(tmp_path):
    """Of several sources that do not compile the first in order is reported, every time."""
    jobs = []
    for index, text in enumerate(["int a;", "one", "two", "three"]):
        source = write(tmp_path / f"s{index}.c", text)
        jobs.append(Compilation(source, tmp_path / f"o{index}.o", "c"))
    with pytest.raises(ToolchainError, match=r"compiling s1\.c"):
        compile_sources(jobs, cwd=tmp_path)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="the CUDA toolkit is not installed")
def test_cuda_source_links_with_nvcc(tmp_path):
    """A .cu source is compiled and linked by nvcc, which brings the CUDA runtime."""
    source = write(
        tmp_path / "k.cu",
        "__global__ void k(float *p) { *p = 1; }\n"
        'extern "C" void launch(float *p) { k<<<1, 1>>>(p); }\n',
    )
    create_shared(tmp_path / "k.so", str(source))
    assert " T launch" in output_of("nm", "-D", tmp_path / "k.so")
    assert "SYMBOLIC" in output_of("readelf", "-dW", tmp_path / "k.so")


# What a compiler may do wrong


def test_error_names_file_and_first_error_line(tmp_path):
    """The message is one line; command, exit status and the whole text are attributes."""
    source = write(tmp_path / "bad.c", "int x = 1;\nint f(void) { return y; }\n")
    pattern = r"^gcc exited with 1 compiling bad\.c: .*bad\.c:2:\d+: error: .y. undeclared.*$"
    with pytest.raises(ToolchainError, match=pattern) as caught:
        compile_c(source)
    assert caught.value.returncode == 1
    assert caught.value.command[0] == GCC
    assert "In function" in caught.value.stderr


def test_colours_do_not_hide_the_error(tmp_path):
    """Flags that ask for colours give the same words."""
    source = write(tmp_path / "bad.c", "int f(void) { return y; }\n")
    with pytest.raises(ToolchainError, match=r"error: .y. undeclared") as caught:
        compile_c(source, cc="gcc -fdiagnostics-color=always")
    assert "\x1b" not in caught.value.stderr


def test_without_an_error_line_the_last_twenty_are_shown(tmp_path, add_c):
    """A compiler that says nothing known is quoted from its end."""
    compiler = program(tmp_path / "cc", "for i in $(seq 30); do echo line $i; done; exit 3\n")
    with pytest.raises(ToolchainError) as caught:
        compile_c(add_c, cc=compiler)
    head, _, rest = caught.value.message.partition(": ")
    assert head == "cc exited with 3 compiling add.c"
    assert rest.split("\n") == [f"line {index}" for index in range(11, 31)]


def test_silent_compiler(tmp_path, add_c):
    """One that says nothing is reported as such."""
    with pytest.raises(ToolchainError, match=r"exited with 2 compiling add\.c: it printed nothing"):
        compile_c(add_c, cc=program(tmp_path / "cc", "exit 2\n"))


def test_the_linkers_epilogue_tells_nothing(tmp_path, add_c):
    """That "ld returned 1" is shown only with the lines before it."""
    script = "echo odd trouble; echo 'collect2: error: ld returned 1 exit status'; exit 1\n"
    with pytest.raises(ToolchainError, match=r"add\.c: odd trouble\ncollect2: error"):
        compile_c(add_c, cc=program(tmp_path / "cc", script))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, r"SIGKILL \(out of memory\?\)"),
        (signal.SIGSEGV, "SIGSEGV"),
        (signal.SIGRTMIN + 1, f"signal {signal.SIGRTMIN + 1}"),
    ],
)
def test_signal_is_named(tmp_path, add_c, number, words):
    """A compiler ended by a signal is reported with the signal's name."""
    compiler = program(tmp_path / "cc", f"echo dying; ulimit -c 0; kill -{int(number)} $$\n")
    with pytest.raises(ToolchainError, match=f"^cc ended by {words} compiling add.c: dying") as e:
        compile_c(add_c, cc=compiler)
    assert e.value.returncode == -number


def test_compiler_that_makes_nothing(tmp_path, add_c):
    """Exit status 0 without an output is an error."""
    with pytest.raises(ToolchainError, match=r"exited with 0 compiling add\.c, but made no"):
        compile_c(add_c, cc=program(tmp_path / "cc", "exit 0\n"))


def test_compiler_that_makes_an_empty_file(tmp_path, add_c):
    """Exit status 0 with an empty output is an error."""
    compiler = program(tmp_path / "cc", 'for last; do :; done; : > "$last"\n')
    with pytest.raises(ToolchainError, match=r"add\.c, but its output is empty"):
        compile_c(add_c, cc=compiler)


def test_stale_object_is_not_taken_for_a_new_one(tmp_path, add_c):
    """An object that lay there before does not pass for what the compiler made."""
    compile_c(add_c)
    with pytest.raises(ToolchainError, match="made no output"):
        compile_c(add_c, cc=program(tmp_path / "cc", "exit 0\n"))


def test_stale_library_is_not_taken_for_a_new_one(tmp_path, add_c):
    """A library that lay there before stays, and does not pass for what the linker made."""
    library = write(tmp_path / "old.so", "old")
    with pytest.raises(ToolchainError, match=r"linking old\.so, but made no output"):
        create_shared(library, compile_c(add_c), cc=program(tmp_path / "cc", "exit 0\n"))
    assert library.read_text() == "old"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"#!/no/such/interpreter\n", "No such file or directory"),
        (b"\x7fELF, not really", "Exec format error"),
    ],
)
def test_compiler_that_cannot_start(tmp_path, add_c, content, reason):
    """A file that passes for a program and is none is reported with the system's reason."""
    (tmp_path / "cc").write_bytes(content)
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(ToolchainError, match=f"cc: cannot start: {reason}"):
        compile_c(add_c, cc=str(tmp_path / "cc"))


def test_nul_in_an_option(add_c):
    """What no command line can hold is refused."""
    with pytest.raises(ToolchainError, match="cannot start: embedded null byte"):
        compile_c(add_c, options=["-DX=\0"])


# Running


def test_output_is_bounded(tmp_path):
    """Of 200 MB that are no text, the start and the end are kept."""
    script = "echo first; head -c 200000000 /dev/zero | tr '\\0' '\\377'; echo; echo last: error\n"
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path)
    assert completed.output.startswith("first\n\N{REPLACEMENT CHARACTER}")
    assert completed.output.endswith("\nlast: error\n")
    left_out = len("first\n") + 200_000_000 + len("\nlast: error\n") - 2 * KEPT_NBYTES
    assert f"... {left_out} bytes left out ..." in completed.output
    assert len(completed.output) < 2 * KEPT_NBYTES + 100


def test_memory_is_bounded(tmp_path):
    """A compiler that prints 200 MB costs us less than 16 MB."""
    compiler = program(tmp_path / "cc", "head -c 200000000 /dev/zero\n")
    completed = run_python(
        f"import resource; run([{compiler!r}], cwd=Path({str(tmp_path)!r}));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    bare = run_python("import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)")
    assert int(completed) - int(bare) < 16 * 1024


def test_environment_of_a_program(tmp_path, monkeypatch):
    """Programs run in the private folder, in the C locale."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    script = 'pwd; echo "$LC_ALL $TMPDIR $KEPT"\n'
    monkeypatch.setenv("KEPT", "kept")
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path)
    assert completed.output == f"{tmp_path}\nC {tmp_path} kept\n"
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
    assert completed.output == f"{tmp_path}\nC {tmp_path} \n"


def test_stdin_is_empty(tmp_path):
    """What is typed or piped to us is not for the compiler."""
    script = program(tmp_path / "cc", "cat\n")
    code = f"print(run([{script!r}], cwd=Path({str(tmp_path)!r})).output)"
    command = [sys.executable, "-c", PRELUDE + code]
    assert subprocess.run(command, input=b"typed", capture_output=True).stdout == b"\n"


def test_temporary_files_of_gcc_are_private(tmp_path, add_c, monkeypatch):
    """A TMPDIR that is missing, full or not writable does not matter."""
    monkeypatch.setenv("TMPDIR", "/proc/no such folder")
    assert compile_c(add_c).is_file()
    assert sorted(path.name for path in (tmp_path / "private").iterdir()) == ["made.o"]


def test_no_more_are_started_after_a_bad_one(tmp_path):
    """Once one exits with 1 the rest of a long queue is not started."""
    good = program(tmp_path / "good", "exit 0\n")
    bad = program(tmp_path / "bad", "exit 1\n")
    ended = run_all([[good], [bad], *[[good]] * 100], cwd=tmp_path)
    assert [completed.returncode for completed in ended[:2]] == [0, 1]
    assert len(ended) < 102


def test_closed_stdout_is_not_the_end(tmp_path):
    """A program that closes its output and works on is waited for."""
    script = "echo before; exec >&- 2>&-; sleep 0.3; : > made; exit 4\n"
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path)
    assert completed.returncode == 4
    assert (tmp_path / "made").exists()


def test_child_that_stays_behind_is_ended(tmp_path):
    """A program that leaves a child with its output open neither blocks us nor leaves it."""
    script = "sleep 1000 & echo $! > child; echo done; exit 0\n"
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path)
    assert completed.output == "done\n"
    wait_until(lambda: is_gone(int((tmp_path / "child").read_text())))


def test_ignored_sigchld(tmp_path):
    """Where the kernel reaps children at once, programs still run to their end."""
    script = program(tmp_path / "cc", "echo hello\n")
    code = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        f"print(run([{script!r}], cwd=Path({str(tmp_path)!r})).output, end='')"
    )
    assert run_python(code) == "hello\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_a_hanging_compiler_and_its_children(tmp_path, add_c, number):
    """Ctrl-C ends the whole group, one process deep and two, of each of several compilers."""
    script = 'sleep 1000 & echo $$ $! > "$0.$$.tmp"; mv "$0.$$.tmp" "$0.$$.pids"; wait\n'
    compiler = program(tmp_path / "cc", script)
    library = write(tmp_path / "add.so", "old")
    other = write(tmp_path / "other.c", "int x;\n")
    code = (
        "from packer.files.output import terminate_as_exception\n"
        "from packer.toolchain.create import create_shared\n"
        "with terminate_as_exception():\n"
        f"    create_shared({str(library)!r}, {[str(add_c), str(other)]!r}, cc={compiler!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", PRELUDE + code], stderr=subprocess.PIPE)
    wanted = min(2, os.cpu_count() or 1)
    wait_until(lambda: len(list(tmp_path.glob("cc.*.pids"))) == wanted)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGINT if number == signal.SIGINT else 143)
    pids = [int(pid) for file in tmp_path.glob("cc.*.pids") for pid in file.read_text().split()]
    assert len(pids) == 2 * wanted
    wait_until(lambda: all(is_gone(pid) for pid in pids))
    assert library.read_text() == "old"
    assert list(tmp_path.glob(".packer-*")) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_killed_exporter_takes_its_compilers_along(tmp_path, add_c, number):
    """Row F4: nothing can be caught then, and yet no process of the group is left."""
    script = 'sleep 1000 & echo $$ $! $PPID > "$0.tmp"; mv "$0.tmp" "$0.pids"; wait\n'
    compiler = program(tmp_path / "cc", script)
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "from packer.toolchain.create import create_shared\n"
        f"create_shared({str(tmp_path / 'add.so')!r}, {str(add_c)!r}, cc={compiler!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", PRELUDE + code])
    wait_until((tmp_path / "cc.pids").exists)
    pids = [int(pid) for pid in (tmp_path / "cc.pids").read_text().split()]
    assert pids[2] == process.pid
    guards = [pid for pid in children_of(process.pid) if pid not in pids]
    assert len(guards) == 1
    process.send_signal(number)
    assert process.wait() == -number
    wait_until(lambda: all(is_gone(pid) for pid in pids + guards))


def test_thread_that_ends_leaves_its_compiler(tmp_path):
    """A program belongs to the process: the end of another thread is not its end."""
    script = program(tmp_path / "cc", "sleep 0.3; echo done\n")
    ended = []
    threads = [threading.Thread(target=lambda: ended.append(run([script], cwd=tmp_path)))]
    threads += [threading.Thread(target=lambda: run(["/bin/true"], cwd=tmp_path))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [completed.output for completed in ended] == ["done\n"]


def children_of(pid: int) -> list[int]:
    """The processes that a process started."""
    return [
        int(stat.split("/")[2])
        for stat in glob.glob("/proc/[0-9]*/stat")
        if (fields := read_if_there(stat)) and int(fields.rpartition(")")[2].split()[1]) == pid
    ]


def read_if_there(path: str) -> str:
    """A file's text; "" for a process that has ended meanwhile."""
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


STARTING = """
import os, signal, subprocess, sys
from pathlib import Path
from packer.files.output import terminate_as_exception
from packer.toolchain.process import run
class Popen(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        print(self.pid, flush=True)
        os.kill(os.getpid(), int(sys.argv[1]))
subprocess.Popen = Popen
with terminate_as_exception():
    run(["/bin/sleep", "60"], cwd=Path.cwd())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_that_arrives_while_a_program_starts_ends_it(tmp_path, number) -> None:
    """It waits until somebody knows the program; then it is what it always is."""
    command = [sys.executable, "-c", STARTING, str(int(number))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    expected = -signal.SIGINT if number == signal.SIGINT else 128 + number
    assert done.returncode == expected, done.stderr
    guard, sleeper = map(int, done.stdout.split())
    assert is_gone(guard) and is_gone(sleeper)


PRELUDE = "from pathlib import Path\nfrom packer.toolchain.process import run\n"


def run_python(code: str) -> str:
    """Run some lines in a fresh Python, and give what they print."""
    return output_of(sys.executable, "-c", PRELUDE + code)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, be it reaped yet or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def wait_until(condition) -> None:
    """Wait for another process."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("waited for 30 s")


# Linking


def test_shared_library_has_the_default_flags(tmp_path, add_c):
    """Symbolic, relro, bound at once, no executable stack, no library that is not needed."""
    library = tmp_path / "add.so"
    create_shared(str(library), [str(compile_c(add_c))])
    assert ctypes.CDLL(str(library)).add(40, 2) == 42
    dynamic = output_of("readelf", "-dW", library)
    assert "SYMBOLIC" in dynamic
    assert "NOW" in dynamic
    assert "libm." not in dynamic
    assert "libstdc++" not in dynamic
    segments = output_of("readelf", "-lW", library)
    assert "GNU_RELRO" in segments
    assert [line for line in segments.splitlines() if "GNU_STACK" in line and " RW " in line]


def test_own_gamma_is_called(tmp_path):
    """A function named as one of libm's is the library's own."""
    source = write(
        tmp_path / "g.c",
        "double gamma(double x) { return x + 1; }\ndouble f(double x) { return gamma(x); }\n",
    )
    create_shared(tmp_path / "g.so", source)
    library = ctypes.CDLL(str(tmp_path / "g.so"))
    library.f.restype, library.f.argtypes = ctypes.c_double, [ctypes.c_double]
    assert library.f(41.0) == 42.0


def test_needed_libm_is_linked(tmp_path):
    """-lm is there, at the end, for who needs it."""
    source = write(tmp_path / "e.c", "#include <math.h>\ndouble f(double x) { return erf(x); }\n")
    create_shared(tmp_path / "e.so", [source], cc="gcc")
    assert "libm.so" in output_of("readelf", "-dW", tmp_path / "e.so")


def test_sources_are_compiled_in_place(tmp_path, add_c, monkeypatch):
    """Sources and objects mix; C++ brings its driver, hence its library; nothing stays behind."""
    source = write(
        tmp_path / "s.cpp",
        '#include <string>\nextern "C" int add(int, int);\n'
        'extern "C" int f(int n) { return add(std::string(n, SIGN).size(), 1); }\n',
    )
    monkeypatch.setenv("CC", "gcc")
    create_shared(tmp_path / "s.so", [source, compile_c(add_c)], ["-DSIGN=65"])
    assert ctypes.CDLL(str(tmp_path / "s.so")).f(41) == 42
    assert "libstdc++" in output_of("readelf", "-dW", tmp_path / "s.so")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "add.c", "private", "s.cpp", "s.so",
    ]  # fmt: skip


def test_static_library_with_cxx_inside(tmp_path):
    """An archive of C++ objects links without a word about C++."""
    source = write(tmp_path / "s.cc", '#include <new>\nextern "C" int *f() { return new int; }\n')
    made = compile_source(source, tmp_path / "s.o", language="cc", cwd=tmp_path)
    output_of("ar", "rc", tmp_path / "libs.a", made)
    archive = tmp_path / "libs.a"
    options = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
    create_shared(tmp_path / "s.so", [], options)
    assert "libstdc++" in output_of("readelf", "-dW", tmp_path / "s.so")


@pytest.mark.parametrize("name", ["a b.o", "-Wl,-z.o", "@file.o", "-o.o"])
def test_hostile_object_names(tmp_path, monkeypatch, add_c, name):
    """Objects are passed by absolute path, so none is taken for an option."""
    monkeypatch.chdir(tmp_path)
    compile_c(add_c).rename(tmp_path / name)
    create_shared("-out @.so", name)
    assert " T add" in output_of("nm", "-D", tmp_path / "-out @.so")


def test_options_are_not_changed(tmp_path, add_c):
    """The caller's lists are as before."""
    objects, options = [str(add_c)], ["-O1"]
    create_shared(tmp_path / "a.so", objects, options=options)
    assert (objects, options) == ([str(add_c)], ["-O1"])


def test_undefined_reference_is_the_line_shown(tmp_path):
    """Of a linker's many lines the one that tells is shown."""
    source = write(tmp_path / "u.c", "int foo(void);\nint f(void) { return foo(); }\n")
    with pytest.raises(
        ToolchainError, match=r"g\+\+ exited with 1 linking u\.so: .*undefined reference to .foo"
    ):
        create_shared(tmp_path / "u.so", [compile_c(source)], ["-Wl,-z,defs"])
    assert not (tmp_path / "u.so").exists()


def test_missing_folder_of_the_library(tmp_path, add_c):
    """A library in no folder is refused before anything is compiled."""
    with pytest.raises(ExportError, match=r"no/a\.so: cannot write: No such file or directory"):
        create_shared(tmp_path / "no" / "a.so", add_c, cc="no-such-cc")


# TVM's names


def test_create_shared_says_what_it_makes():
    """The attributes are TVM's."""
    assert create_shared.output_format == "so"
    assert create_shared.object_format == "o"
    assert create_shared.get_target_triple() == output_of("gcc", "-dumpmachine").strip()


def test_compiler_that_does_not_know_its_target(tmp_path):
    """Where -dumpmachine is unknown, or nonsense, the triple is None."""
    for name, script in (("one", "exit 1\n"), ("two", "echo 'what is this?'\n")):
        fcompile = cross_compiler(program(tmp_path / name, script))
        assert fcompile.get_target_triple() is None


@pytest.mark.parametrize("variable", ["CC", "CXX"])
@pytest.mark.parametrize("suffix", ["so", "o", "a", "tar"])
def test_variable_that_names_no_compiler_is_an_error(tmp_path, monkeypatch, variable, suffix):
    """C alone needs no C++ compiler, yet one that is named and fails is not passed over."""
    import packer

    monkeypatch.setenv(variable, "false -m64")
    host = packer.CSourceModule("int one(void) { return 1; }", functions={"one": "int(void)"})
    message = f"^{variable}='false -m64': exited with 1 .*name another one, or unset {variable}$"
    with pytest.raises(ToolchainError, match=message):
        packer.export_library(host, tmp_path / f"one.{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_variable_is_asked_though_nothing_is_compiled(tmp_path, monkeypatch):
    """A tree without host code needs no compiler, and yet a wrong variable is no accident."""
    import packer
    import runtime

    monkeypatch.setenv("CXX", "false")
    kernels = runtime.DeviceModule("opencl", "kernel void f() {}", "cl", ())
    with pytest.raises(ToolchainError, match="^CXX='false': exited with 1"):
        packer.export_library(kernels, tmp_path / "kernels.so")


def test_cross_compiler_of_a_program(tmp_path, add_c):
    """Another compiler, with options and files of its own, and its own triple."""
    compiler = program(
        tmp_path / "arm-cc", f'test "$*" = -dumpmachine && echo arm-x-y || exec {GCC} "$@"\n'
    )
    extra = write(tmp_path / "extra.c", "int extra(void) { return EXTRA; }\n")
    options = ["-DEXTRA=7"]
    fcompile = cross_compiler(compiler, options=options, add_files=[str(extra)])
    for name in ("a.so", "b.so"):
        fcompile(tmp_path / name, [str(add_c)], options=["-DX"])
        assert ctypes.CDLL(str(tmp_path / name)).extra() == 7
    assert options == ["-DEXTRA=7"]
    assert fcompile.output_format == "so"
    assert fcompile.get_target_triple() == "arm-x-y"


def test_cross_compiler_of_a_function():
    """A function is called with the options and files appended; its attributes carry over."""
    calls = []

    def compile_func(output, objects, options):
        calls.append((output, objects, options))

    plain = cross_compiler(compile_func)
    plain("out", "a.o")
    assert plain.output_format == "so"
    assert plain.get_target_triple() is None
    compile_func.output_format = "wasm"
    compile_func.object_format = "bc"
    compile_func.get_target_triple = lambda: "wasm32-wasi"
    fcompile = cross_compiler(compile_func, ["-a"], add_files=["b.o"])
    fcompile("out", ["a.o"], options=["-b"])
    assert calls == [("out", ["a.o"], []), ("out", ["a.o", "b.o"], ["-a", "-b"])]
    assert (fcompile.output_format, fcompile.object_format) == ("wasm", "bc")
    assert fcompile.get_target_triple() == "wasm32-wasi"


def test_cross_compiler_takes_what_it_is_told():
    """Format and triple given outright win."""
    fcompile = cross_compiler("gcc", output_format="dylib", get_target_triple=lambda: "a-b")
    assert fcompile.output_format == "dylib"
    assert fcompile.get_target_triple() == "a-b"

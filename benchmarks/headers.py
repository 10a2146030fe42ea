"""Export three libraries from their headers, beside cffi: lines of the user, and seconds.

    python benchmarks/headers.py

Debian's packages: libsamplerate0-dev, zlib1g-dev, libsqlite3-dev. The programs of both sides print
the same results; a line that is empty does not count.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple


class Case(NamedTuple):
    """One library: the command and the program of packer's user, and the program of cffi's."""

    name: str
    command: str
    ours: str
    cffi: str


SAMPLERATE = Case(
    "libsamplerate: resample a sine",
    "packer export src.so --header /usr/include/samplerate.h -lsamplerate",
    """
import numpy as np, runtime
x = np.sin(2 * np.pi * 5 * np.arange(441) / 441).astype(np.float32)
y = np.zeros(480, np.float32)
src = runtime.load("src.so")
data = {"data_in": x, "data_out": y, "input_frames": 441, "output_frames": 480}
src["src_simple"](data | {"src_ratio": 480 / 441, "end_of_input": 1}, 0, 1)
print(np.abs(y - np.sin(2 * np.pi * 5 * np.arange(480) / 480)).max() < 0.002)
""",
    """
import cffi, numpy as np
ffi = cffi.FFI()
ffi.cdef(\"\"\"
typedef struct {
  const float *data_in;
  float *data_out;
  long input_frames, output_frames;
  long input_frames_used, output_frames_gen;
  int end_of_input;
  double src_ratio;
} SRC_DATA;
int src_simple(SRC_DATA *data, int converter_type, int channels);
\"\"\")
ffi.set_source("_src", "#include <samplerate.h>", libraries=["samplerate"])
ffi.compile()
from _src import ffi, lib
x = np.sin(2 * np.pi * 5 * np.arange(441) / 441).astype(np.float32)
y = np.zeros(480, np.float32)
data = ffi.new("SRC_DATA *")
data.data_in = ffi.from_buffer("float[]", x)
data.data_out = ffi.from_buffer("float[]", y)
data.input_frames, data.output_frames = 441, 480
data.src_ratio, data.end_of_input = 480 / 441, 1
lib.src_simple(data, 0, 1)
print(np.abs(y - np.sin(2 * np.pi * 5 * np.arange(480) / 480)).max() < 0.002)
""",
)
ZLIB = Case(
    "zlib: compress an array, and back",
    "packer export z.so --header /usr/include/zlib.h -lz",
    """
import numpy as np, runtime
a = np.arange(1000, dtype=np.uint8)
z = runtime.load("z.so")
packed, size = np.zeros(z["compressBound"](1000), np.uint8), np.array([1013], np.uint64)
z["compress"](packed, size, a, 1000)
b, n = np.zeros_like(a), np.array([1000], np.uint64)
z["uncompress"](b, n, packed, int(size[0]))
print(bool((a == b).all()), size[0] < 400)
""",
    """
import cffi, numpy as np
ffi = cffi.FFI()
ffi.cdef(\"\"\"
unsigned long compressBound(unsigned long n);
int compress(unsigned char *to, unsigned long *size, const unsigned char *data, unsigned long n);
int uncompress(unsigned char *to, unsigned long *size, const unsigned char *data, unsigned long n);
\"\"\")
ffi.set_source("_z", "#include <zlib.h>", libraries=["z"])
ffi.compile()
from _z import ffi, lib
a = np.arange(1000, dtype=np.uint8)
packed = np.zeros(lib.compressBound(1000), np.uint8)
size = ffi.new("unsigned long *", len(packed))
to, data = ffi.from_buffer("unsigned char[]", packed), ffi.from_buffer("unsigned char[]", a)
lib.compress(to, size, data, 1000)
b, n = np.zeros_like(a), ffi.new("unsigned long *", 1000)
lib.uncompress(ffi.from_buffer("unsigned char[]", b), n, to, size[0])
print(bool((a == b).all()), size[0] < 400)
""",
)
SQLITE = Case(
    "sqlite3: a query with a callback",
    "packer export db.so --header /usr/include/sqlite3.h -lsqlite3 --function"
    " 'sqlite3_exec=int(sqlite3 *db, const char *sql, int (*row)(void *data, int n,"
    " char *values[n], char *names[n]), void *data, char **error)'",
    """
import runtime
s = runtime.load("db.so")
status, db = s["sqlite3_open"](":memory:")
rows = []
sql = "create table t(a); insert into t values (1), (2); select a, 2 * a as b from t"
s["sqlite3_exec"](db, sql, lambda d, n, values, names: rows.append(list(values)) or 0, None, None)
s["sqlite3_close"](db)
print(rows)
""",
    """
import cffi
ffi = cffi.FFI()
ffi.cdef(\"\"\"
typedef struct sqlite3 sqlite3;
int sqlite3_open(const char *filename, sqlite3 **db);
int sqlite3_exec(sqlite3 *, const char *sql, int (*row)(void *, int, char **, char **), void *,
                 char **);
int sqlite3_close(sqlite3 *);
extern "Python" int on_row(void *, int, char **, char **);
\"\"\")
ffi.set_source("_sqlite", "#include <sqlite3.h>", libraries=["sqlite3"])
ffi.compile()
from _sqlite import ffi, lib
db = ffi.new("sqlite3 **")
lib.sqlite3_open(b":memory:", db)
rows = []
@ffi.def_extern()
def on_row(data, n, values, names):
    rows.append([ffi.string(values[i]).decode() for i in range(n)])
    return 0
sql = b"create table t(a); insert into t values (1), (2); select a, 2 * a as b from t"
lib.sqlite3_exec(db[0], sql, lib.on_row, ffi.NULL, ffi.NULL)
lib.sqlite3_close(db[0])
print(rows)
""",
)
CASES = (SAMPLERATE, ZLIB, SQLITE)


def run_ours(case: Case, folder: Path) -> str:
    """Export the header, run the program, and return what it prints."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    command = shlex.split(case.command)
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return run_program(case.ours, folder)


def run_program(program: str, folder: Path) -> str:
    """Run a Python program in a folder, and return what it prints last."""
    (folder / "program.py").write_text(program)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, "program.py"]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()[-1]


def num_lines(program: str) -> int:
    """Count the lines that a user writes."""
    return sum(bool(line.strip()) for line in program.splitlines())


def main() -> None:
    """Print a row for each library."""
    print("| library | lines | lines with cffi | seconds | seconds with cffi |")
    print("|---|---|---|---|---|")
    for case in CASES:
        with TemporaryDirectory() as ours, TemporaryDirectory() as theirs:
            start = time.perf_counter()
            found = run_ours(case, Path(ours))
            middle = time.perf_counter()
            expected = run_program(case.cffi, Path(theirs))
            end = time.perf_counter()
        if found != expected:
            sys.exit(f"{case.name}: {found}, expected {expected}")
        lines = f"{1 + num_lines(case.ours)} | {num_lines(case.cffi)}"
        print(f"| {case.name} | {lines} | {middle - start:.1f} | {end - middle:.1f} |")


if __name__ == "__main__":
    main()

"""Six libraries exported from their headers, beside cffi: lines, and seconds of the processor.

    python benchmarks/headers.py

Debian's packages: libsamplerate0-dev, zlib1g-dev, libsqlite3-dev, libcjson-dev, libexpat1-dev,
libpcre2-dev. The programs of both sides print
the same results; a line that is empty does not count. A user of cffi writes the declarations of the
functions that the program calls; so packer has two rows: all functions of the header, and those.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple


class Case(NamedTuple):
    """One library: the command and the program of packer's user, and the program of cffi's.

    `called` are the functions that the programs call.
    """

    name: str
    called: tuple[str, ...]
    command: str
    ours: str
    cffi: str


SAMPLERATE = Case(
    "libsamplerate: resample a sine",
    ("src_simple",),
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
    ("compressBound", "compress", "uncompress"),
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
    ("sqlite3_open", "sqlite3_exec", "sqlite3_close"),
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
CJSON = Case(
    "cJSON: the numbers of a document",
    ("cJSON_Parse", "cJSON_Delete"),
    "packer export cjson.so --header /usr/include/cjson/cJSON.h -lcjson",
    """
import runtime
json, numbers = runtime.load("cjson.so"), []
root = json["cJSON_Parse"]('{"sides": [1.5, 2, 3]}')
side = root.child.child
while side:
    numbers.append(side.valuedouble)
    side = side.next
json["cJSON_Delete"](root)
print(numbers)
""",
    """
import cffi
ffi = cffi.FFI()
ffi.cdef(\"\"\"
typedef struct cJSON {
  struct cJSON *next, *prev, *child;
  int type;
  char *valuestring;
  int valueint;
  double valuedouble;
  char *string;
} cJSON;
cJSON *cJSON_Parse(const char *value);
void cJSON_Delete(cJSON *item);
\"\"\")
ffi.set_source("_json", "#include <cjson/cJSON.h>", libraries=["cjson"])
ffi.compile()
from _json import ffi, lib
root, numbers = lib.cJSON_Parse(b'{"sides": [1.5, 2, 3]}'), []
side = root.child.child
while side:
    numbers.append(side.valuedouble)
    side = side.next
lib.cJSON_Delete(root)
print(numbers)
""",
)
EXPAT = Case(
    "expat: the elements of a document",
    ("XML_ParserCreate", "XML_ParserFree", "XML_SetUserData", "XML_SetElementHandler", "XML_Parse"),
    "packer export expat.so --header /usr/include/expat.h -lexpat"
    " --callback XML_SetElementHandler=kept --callback XML_SetUserData=kept",
    """
import runtime
xml, seen = runtime.load("expat.so"), []
parser = xml["XML_ParserCreate"](None)
xml["XML_SetUserData"](parser, seen)
xml["XML_SetElementHandler"](parser, lambda d, name, _: d.append(name), lambda d, name: None)
xml["XML_Parse"](parser, "<a><b/></a>", 11, 1)
xml["XML_ParserFree"](parser)
print(seen)
""",
    """
import cffi
ffi = cffi.FFI()
ffi.cdef(\"\"\"
typedef ... *XML_Parser;
XML_Parser XML_ParserCreate(const char *encoding);
void XML_ParserFree(XML_Parser parser);
void XML_SetUserData(XML_Parser parser, void *data);
void XML_SetElementHandler(XML_Parser parser, void (*start)(void *, const char *, const char **),
                           void (*end)(void *, const char *));
int XML_Parse(XML_Parser parser, const char *text, int n, int is_final);
extern "Python" void on_start(void *, const char *, const char **);
extern "Python" void on_end(void *, const char *);
\"\"\")
ffi.set_source("_xml", "#include <expat.h>", libraries=["expat"])
ffi.compile()
from _xml import ffi, lib
seen = []
@ffi.def_extern()
def on_start(data, name, attributes):
    ffi.from_handle(data).append(ffi.string(name).decode())
@ffi.def_extern()
def on_end(data, name):
    pass
parser, kept = lib.XML_ParserCreate(ffi.NULL), ffi.new_handle(seen)
lib.XML_SetUserData(parser, kept)
lib.XML_SetElementHandler(parser, lib.on_start, lib.on_end)
lib.XML_Parse(parser, b"<a><b/></a>", 11, 1)
lib.XML_ParserFree(parser)
print(seen)
""",
)
PCRE2 = Case(
    "pcre2: the groups of a match",
    (
        "pcre2_compile_8",
        "pcre2_match_data_create_8",
        "pcre2_match_8",
        "pcre2_get_ovector_pointer_8",
    ),
    "packer export pcre2.so --header /usr/include/pcre2.h -DPCRE2_CODE_UNIT_WIDTH=8 -lpcre2-8",
    """
import runtime
re, text = runtime.load("pcre2.so"), b"born 1815-12"
error, at = runtime.new(re, "int"), runtime.new(re, "size_t")
code = re["pcre2_compile_8"](rb"(\\d+)-(\\d+)", 11, 0, error, at, None)
data = re["pcre2_match_data_create_8"](3, None)
re["pcre2_match_8"](code, text, len(text), 0, 0, data, None)
ends = re["pcre2_get_ovector_pointer_8"](data).array(6)[:]
print([text[a:b] for a, b in zip(ends[::2], ends[1::2])])
""",
    """
import cffi
ffi = cffi.FFI()
ffi.cdef(\"\"\"
typedef ... pcre2_code_8;
typedef ... pcre2_match_data_8;
pcre2_code_8 *pcre2_compile_8(const uint8_t *, size_t, uint32_t, int *, size_t *, void *);
pcre2_match_data_8 *pcre2_match_data_create_8(uint32_t, void *);
int pcre2_match_8(const pcre2_code_8 *, const uint8_t *, size_t, size_t, uint32_t,
                  pcre2_match_data_8 *, void *);
size_t *pcre2_get_ovector_pointer_8(pcre2_match_data_8 *);
\"\"\")
ffi.set_source("_re", "#define PCRE2_CODE_UNIT_WIDTH 8\\n#include <pcre2.h>",
               libraries=["pcre2-8"])
ffi.compile()
from _re import ffi, lib
text = b"born 1815-12"
error, at = ffi.new("int *"), ffi.new("size_t *")
code = lib.pcre2_compile_8(rb"(\\d+)-(\\d+)", 11, 0, error, at, ffi.NULL)
data = lib.pcre2_match_data_create_8(3, ffi.NULL)
lib.pcre2_match_8(code, text, len(text), 0, 0, data, ffi.NULL)
ends = ffi.unpack(lib.pcre2_get_ovector_pointer_8(data), 6)
print([text[a:b] for a, b in zip(ends[::2], ends[1::2])])
""",
)
CASES = (SAMPLERATE, ZLIB, SQLITE, CJSON, EXPAT, PCRE2)


def run_ours(case: Case, folder: Path) -> str:
    """Export the header, run the program, and return what it prints."""
    export(case.command, folder)
    return run_program(case.ours, folder)


def export(command: str, folder: Path) -> int:
    """Run a command of packer, and return how many functions the library has."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PACKER_CACHE": "off"}
    words = shlex.split(command)
    done = subprocess.run(
        words, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    found = re.search(r"(\d+) functions?", done.stdout)
    return int(found[1]) if found else 0


def choosing(case: Case) -> str:
    """Return the command that exports the called functions alone."""
    named = [name for name in case.called if f"'{name}=" not in case.command]
    return " ".join([case.command, *(f"--function {name}" for name in named)])


def run_program(program: str, folder: Path) -> str:
    """Run a Python program in a folder, and return what it prints last."""
    (folder / "program.py").write_text(program)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, "program.py"]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()[-1]


def seconds_of_children() -> float:
    """Return the processor time of the programs that ended: a busy machine does not change it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def num_lines(program: str) -> int:
    """Count the lines that a user writes."""
    return sum(bool(line.strip()) for line in program.splitlines())


def measure(case: Case) -> None:
    """Print the rows of one library."""
    results = []
    for row, command in (("header", case.command), ("called functions", choosing(case))):
        with TemporaryDirectory() as folder:
            start = seconds_of_children()
            number = export(command, Path(folder))
            results.append(run_program(case.ours, Path(folder)))
            seconds = seconds_of_children() - start
        lines = 1 + num_lines(case.ours)
        name = "" if results[1:] else case.name
        print(f"| {name} | packer, {row} | {number} | {lines} | {seconds:.2f} |")
    with TemporaryDirectory() as folder:
        start = seconds_of_children()
        results.append(run_program(case.cffi, Path(folder)))
        seconds = seconds_of_children() - start
    print(f"| | cffi | {len(case.called)} | {num_lines(case.cffi)} | {seconds:.2f} |")
    if len(set(results)) > 1:
        sys.exit(f"{case.name}: the results differ: {results}")


def main() -> None:
    """Print three rows for each library."""
    print("| library | by | functions | lines | seconds |")
    print("|---|---|---|---|---|")
    for case in CASES:
        measure(case)


if __name__ == "__main__":
    main()

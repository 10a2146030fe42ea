"""dso_module_metadata: the JSON text of a library, borrowed, under ASan and UBSan."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from ...support.compile import INCLUDE
from ...support.dso_driver import ARCHIVE
from ...support.libdso import SANITIZE, compile_program, run_program
from ...support.system_models import model

GIVEN = {"version": "1.0", "license": "MIT", "authors": ["A. \u017b"]}
PROGRAM = """
#include <stdio.h>
#include "dso.h"
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *json = "unset";
    const int is_linked = argv[i][0] == '@';
    dso_module *m = is_linked ? dso_system_library(argv[i] + 1) : dso_load(argv[i], NULL);
    if (m == NULL) return puts(dso_last_error()), 1;
    dso_module *const *imports;
    const size_t count = dso_module_imports(m, &imports);
    for (size_t k = 0; k <= count; k++) {
      const int status = dso_module_metadata(k < count ? imports[k] : m, &json);
      puts(status != 0 ? dso_last_error() : json != NULL ? json : "none");
    }
    dso_module_release(m);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The compiled program."""
    return compile_program(PROGRAM, tmp_path_factory.mktemp("program") / "program", *SANITIZE)


def test_text_is_what_the_export_got(program, tmp_path) -> None:
    """Of every module of the library, as Python's runtime reads it; none without."""
    root = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int(void)"})
    root.import_module(runtime.DeviceModule("cuda", b"payload", "cubin", []))
    path = packer.export_library(root, tmp_path / "a.so", output=packer.Output(metadata=GIVEN))
    lines = run_program(program, path).splitlines()
    assert [json.loads(line)["metadata"] for line in lines] == [runtime.load(path).metadata] * 2
    plain = packer.export_library(root, tmp_path / "plain.so")
    assert run_program(program, plain).splitlines() == ["none", "none"]


def test_system_library_has_its_own(tmp_path) -> None:
    """A model in the program; another prefix has none."""
    made = model(tmp_path, 1, output=packer.Output(metadata=GIVEN))
    header = '#define DSO_SYSTEM_LIB_IMPLEMENTATION\n#include "dso_packer_system_lib.h"\n'
    (tmp_path / "linked.c").write_text(header + PROGRAM)
    linked = tmp_path / "linked"
    command = ["cc", f"-I{INCLUDE}", tmp_path / "linked.c", made, ARCHIVE, "-o", linked]
    subprocess.run([*command, "-pthread", "-ldl", "-lm"], check=True)
    first, *others = dict.fromkeys(run_program(linked, "@net1_", "@net2_").splitlines())
    assert json.loads(first)["metadata"] == GIVEN
    assert others == ["none"]


MALFORMED = {
    '"{}", 2': "expected text that ends with its only NUL",
    '"{\\0}"': "expected text that ends with its only NUL",
    '"{\\xff}"': "expected UTF-8 text",
    '"{}", 1 << 21': "expected at most 1048576 bytes",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_text_that_is_none_is_refused(program, compile_library, case) -> None:
    """The library loads; the error names the symbol, and is Python's error as well."""
    text, _, size = case.partition(", ")
    path = compile_library(f"const char __packer_library[{size}] = {text};")
    place = f"{path}: __packer_library at 0x0"
    expected = f"BlobFormatError: {place}: {MALFORMED[case]}; export the library again\n"
    assert run_program(program, path) == expected
    with pytest.raises(runtime.BlobFormatError, match="__packer_library at 0x0"):
        _ = runtime.load(path).metadata

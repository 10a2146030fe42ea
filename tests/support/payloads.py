"""Payloads of modules, read by libdso and by Python, to compare what both make of them."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np

import runtime
from runtime.registry import find_loader
from runtime.serial.stream import Reader

from .libdso import compile_program, run_program

# One line for each payload of a file: what was read, or the error.
DRIVER = r"""
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "abi/raised.h"
#include "module/module.h"
#include "types/families.h"

static module_loader loader_of(const char *key) {
  if (strncmp(key, "relax.", 6) == 0) return load_vm_executable;
  if (strcmp(key, "const_loader") == 0) return load_const_loader;
  return load_device;
}

/* A line may contain any text, so it is printed as hexadecimal digits. */
static void say(const char *format, ...) {
  static char text[1 << 20];
  va_list values;
  va_start(values, format);
  int size = vsnprintf(text, sizeof text, format, values);
  va_end(values);
  for (int i = 0; i < size && i < (int)sizeof text - 1; i++) printf("%02x", text[i] & 0xff);
}

static int see_function(void *context, const char *name, const char *signature) {
  (void)context;
  say("|%s:%s", name, signature ? signature : "");
  return 0;
}

static int see_weight(void *context, const char *name, const DLTensor *tensor) {
  (void)context;
  say("|%s=%d,%d,%d", name, tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
  for (int i = 0; i < tensor->ndim; i++) say(",%lld", (long long)tensor->shape[i]);
  return 0;
}

static void show(dso_module *module, size_t offset) {
  say("%s %lu", module->type_key, (unsigned long)offset);
  if (module->type->visit_functions) module->type->visit_functions(module, see_function, NULL);
  if (module->type->visit_weights) module->type->visit_weights(module, see_weight, NULL);
  putchar('\n');
}

static void show_error(void) {
  const char *kind = "", *message = "";
  raised_look(&kind, &message);
  say("%s: %s", kind, message);
  putchar('\n');
}

int main(int argc, char **argv) {
  const char *key = argv[1];
  struct reader start = {.where = "payload", .dialect = argv[2][0] == 't' && argv[2][3] == '-'};
  FILE *file = fopen(argv[4], "rb");
  uint64_t nbytes;
  (void)argc;
  start.is_last_entry = argv[3][0] == '1';
  while (fread(&nbytes, sizeof nbytes, 1, file) == 1) {
    uint8_t *bytes = malloc(nbytes ? nbytes : 1);
    dso_module *module = NULL;
    struct reader reader = start;
    struct span type_key = {key, strlen(key)};
    if (!bytes || fread(bytes, 1, nbytes, file) != nbytes) return 1;
    reader.bytes = bytes;
    reader.end = nbytes;
    if (loader_of(key)(&reader, type_key, &module) == 0) show(module, reader.offset);
    else show_error();
    module_release(module);
    free(bytes);
  }
  fclose(file);
  return 0;
}
"""


@functools.cache
def _driver(*options: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="payloads-"))
    return compile_program(DRIVER, folder / "driver", *options)


def by_libdso(
    key: str,
    payloads: Sequence[bytes],
    dialect: str = "tvm",
    is_last: bool = True,
    options: tuple[str, ...] = (),
) -> list[str]:
    """Describe each payload by libdso."""
    with tempfile.NamedTemporaryFile() as file:
        file.writelines(pack("<Q", len(payload)) + payload for payload in payloads)
        file.flush()
        lines = run_program(_driver(*options), key, dialect, int(is_last), file.name).split("\n")
    return [bytes.fromhex(line).decode(errors="surrogateescape") for line in lines[:-1]]


def by_python(
    key: str, payloads: Sequence[bytes], dialect: str = "tvm", is_last: bool = True
) -> list[str]:
    """Describe each payload by Python's runtime, in the same words."""
    return [_one(key, payload, dialect, is_last) for payload in payloads]


def _one(key: str, payload: bytes, dialect: str, is_last: bool) -> str:
    reader = Reader(payload, where="payload", dialect=dialect)
    reader.last_entry = is_last
    try:
        module: Any = find_loader(key)(reader)
    except runtime.PackerError as error:
        return f"{type(error).__name__}: {_cut(str(error))}"
    parts = [f"{module.type_key} {reader.offset}"]
    parts += [f"{_cut(name)}:{_cut(_signature(module, name))}" for name in module.function_names()]
    parts += [
        f"{_cut(name)}={','.join(map(str, (*tensor.dtype_code, *tensor.shape)))}"
        for name, tensor in module.own_weights.items()
    ]
    return "|".join(parts)


def _cut(text: str) -> str:
    """C's functions take a text up to its first NUL."""
    return text.partition("\0")[0]


def _signature(module: Any, name: str) -> str:
    if isinstance(module, runtime.DeviceModule):
        info = module.functions[name]
        tags = [t for t in info.launch_param_tags if not t.startswith("paramWriteAccess:")]
        types = [f"{type_} arg{i}" for i, type_ in enumerate(info.arg_types)]
        return f"void({', '.join(types + tags)})"
    signature: Callable[[str], str] | None = getattr(module, "signature", None)
    return signature(name).removeprefix(name) if signature else ""


def assert_equal(key: str, payloads: Sequence[bytes], **options: Any) -> list[str]:
    """Compare, and return what both say."""
    ours = by_libdso(key, payloads, **options)
    options.pop("options", None)
    theirs = by_python(key, payloads, **options)
    for payload, one, other in zip(payloads, ours, theirs, strict=True):
        assert one == other, payload
    return theirs


def mutants(payload: bytes, count: int, seed: int) -> list[bytes]:
    """Copies with a few bytes changed, removed or repeated."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        data = bytearray(payload)
        for _ in range(int(random.integers(1, 4))):
            at = int(random.integers(max(1, len(data) - 1)))
            what = int(random.integers(5))
            if not data:
                break
            if what == 0:
                data[at] ^= 1 << int(random.integers(8))
            elif what == 1:
                data[at] = int(random.choice([0, 1, 2, 0x7F, 0x80, 0xFF]))
            elif what == 2:
                del data[at : at + int(random.integers(1, 17))]
            elif what == 3:
                data[at:at] = data[at : at + int(random.integers(1, 17))]
            else:
                data = data[: at + 1]
        made.append(bytes(data))
    return made

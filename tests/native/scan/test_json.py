"""C's parser of JSON accepts what Python's does, and refuses the rest with the same texts."""

from __future__ import annotations

import ctypes
import json
import random
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from runtime.error import shown
from runtime.serial.strict_json import parse_json

from ...support.native import INCLUDE
from ...support.paths import NATIVE

DRIVER = r"""
#include <stdlib.h>
#include <string.h>
#include "abi/heap.h"
#include "scan/json.h"

static void dump(struct text *out, const struct json *value) {
  size_t nodes = value->type == JSON_OBJECT ? 2 * value->size : value->size;
  text_format(out, "%d", (int)value->type);
  if (value->type == JSON_INTEGER) text_format(out, "(%lld)", (long long)value->integer);
  if (value->type == JSON_NUMBER) text_format(out, "(%016llx)", (long long)value->integer);
  if (value->type == JSON_TEXT || value->type == JSON_LARGE) {
    text_format(out, "(%zu)", value->size);
    text_add(out, value->text, value->size + 1);
  }
  if (value->type < JSON_LIST) return;
  text_format(out, "(%zu)", value->size);
  for (size_t i = 0; i < nodes; i++) dump(out, &value->items[i]);
}

/* Store the dump, then what a message shows; or the error. */
size_t run(const char *given, size_t nbytes, char *out, size_t room, size_t *shown_at) {
  char *text = malloc(nbytes ? nbytes : 1), error[JSON_ERROR_SIZE];
  memcpy(text, given, nbytes); /* a sanitizer sees reads beyond it */
  const struct json *value = json_parse(text, nbytes, error);
  struct text all = {0};
  if (value != NULL) dump(&all, value);
  *shown_at = all.size;
  if (value != NULL) json_shown(&all, value);
  else text_add(&all, error, strlen(error));
  if (all.size < room) memcpy(out, text_of(&all), all.size);
  size_t size = all.size;
  json_free(value);
  text_free(&all);
  free(text);
  return size;
}
"""

Outcome = tuple[bytes, str]


@pytest.fixture(scope="module")
def parse(tmp_path_factory) -> Callable[[bytes], Outcome]:
    """The dump of the value and its text in a message; or nothing, and the error."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "driver.c").write_text(DRIVER)
    folders = (NATIVE / "abi", NATIVE / "scan")
    sources = [folder / "driver.c", *(path for one in folders for path in one.glob("*.c"))]
    include = [f"-I{path}" for path in INCLUDE]
    command = ["cc", "-std=c11", "-O1", "-g", "-fPIC", "-shared", *include, *map(str, sources)]
    command += ["-fsanitize=undefined", "-fno-sanitize-recover", "-static-libubsan"]
    subprocess.run([*command, "-o", str(folder / "driver.so")], check=True)
    library = ctypes.CDLL(str(folder / "driver.so"))
    library.run.restype = ctypes.c_size_t
    room = ctypes.create_string_buffer(1 << 20)
    at = ctypes.c_size_t()

    def parse(text: bytes) -> Outcome:
        size = library.run(
            text, ctypes.c_size_t(len(text)), room, ctypes.c_size_t(len(room)), ctypes.byref(at)
        )
        assert size < len(room)
        message = room.raw[at.value : size].decode("utf-8", "surrogatepass")
        return room.raw[: at.value], message

    return parse


def expected(text: bytes) -> Outcome:
    """Parse a text with Python's parser."""
    try:
        value = parse_json(text)
    except ValueError as error:
        return b"", str(error)
    return dump(value), shown(value)


def dump(value: Any) -> bytes:
    """As the driver's."""
    if value is None or isinstance(value, bool):
        return str({None: 0, False: 1, True: 2}[value]).encode()
    if isinstance(value, int):
        text = str(value)
        small = -(1 << 63) <= value < 1 << 63
        return f"3({text})".encode() if small else f"4({len(text)}){text}\0".encode()
    if isinstance(value, float):
        return f"5({struct.pack('>d', value).hex()})".encode()
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        return f"6({len(data)})".encode() + data + b"\0"
    if isinstance(value, list):
        return f"7({len(value)})".encode() + b"".join(map(dump, value))
    pairs = (dump(key) + dump(item) for key, item in value.items())
    return f"8({len(value)})".encode() + b"".join(pairs)


VALID = [
    "null true false 0 -0 1 -1 12 0.5 -0.0 1e3 1E-3 1.5e+300 5e-324 1e-400",
    "123456789012345678901234 -123456789012345678901234",
    "9223372036854775807 -9223372036854775808 9223372036854775808 1e16 1e15 123456.789 0.0001",
    "1.7976931348623157e308 0.1 2.5e-5 4.9406564584124654e-324 1e22 12345678901234567890.5e-30",
    '"" "a" "\\u0041\\n\\t\\"\\\\\\/\\b\\f\\r" "é" "\\ud83d\\ude00" "\\ud83d" "\\ude00" "\\ud83dx"',
    '[] [1,2] [[],[[]]] {} {"a":1} {"a":{"b":[1,2,{"c":null}]},"d":"e"} [{},[]] {"":0}',
]
OTHERS = [
    *(" [ 1 , 2 ] \r\n\t", '{ "a" : 1 , "b" : [ ] }', '["it\'s","\\"","it\'s \\""]', '"\\u0000"'),
    *(
        "[" * 64 + "]" * 64,
        "[" * 65 + "]" * 65,
        "",
        " ",
        "nul",
        "nulll",
        "tru",
        "-",
        "01",
        "1.",
        ".5",
    ),
    *("+1", "1e", "1e+", "1.e5", "-a", "NaN", "Infinity", "-Infinity", "[NaN", "-Infinit", "1e999"),
    *("-1e999", "1" * 40, "1" * 41, "0." + "1" * 40, "1e" + "9" * 40, "1e-" + "9" * 40, "1 2"),
    *("[1,]", "[,1]", "[1 2]", "[1", "[", "[1,", "]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,'),
    *('{"a":1,}', "{a:1}", "{1:1}", '{"a" 1}', '{"a":}', '{"a":1 "b":2}', '{"a":1]', "[1}", "}"),
    *('{"a":1,"a":2}', '{"b":1,"a":2,"b":3,"a":4}', '{"a":{"b":1,"b":2}}', '[{"a":1,"a":1},'),
    *('{"é\\n\'":1,"é\\n\'":2}', '{"' + "k" * 90 + '":1,"' + "k" * 90 + '":2}'),
    *('"', '"a', '"\\', '"\\"', '"\\x"', '"\\u"', '"\\u12"', '"\\u123"', '"\\u1234', '"\\u123g"'),
    *('"\\ud800\\u"', '"\\ud800\\u12"', '"\\ud800\\udc0"', '"\\ud800\\udc00', '"\\ud800\\n"'),
    *('"\\ud800\\ud800\\udc00"', '"\n"', '"a\0b"', '"\x7f"', "\0", "é", '"é" x', '["é", "\\q"]'),
    *("\ufeff1", " \ufeff1", "[" + ",".join(["1"] * 60) + "]", '"' + "é" * 90 + '"', '[1e5, "a"'),
    "{" + ",".join(f'"{i % 20}":{i}' for i in range(40)) + "}",
    "{" + ",".join(f'"{i}":{i}' for i in range(400)) + "}",
    '{"a": [' + ",".join(f'{{"x{i}": [{i}.5, "{i}"]}}' for i in range(50)) + "]}",
]
NOT_UTF8 = [
    b"\xff",
    b"[\xc3]",
    b"\xc3",
    b'"\xe2\x82"',
    b'"\xe2\x82',
    b"\xf0\x9f\x98",
    b"\xed\xa0\x80",
]
NOT_UTF8 += [b"\xc0\x80", b"\xf5\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\x80", b'"\xf0\x9f"']
TEXTS = [text.encode() for line in VALID for text in line.split(" ")]
TEXTS += [text.encode() for text in OTHERS] + NOT_UTF8

# Python 3.13 has another text for a comma before a closing bracket.
COMMA = sys.version_info >= (3, 13)


def same(found: Outcome, wanted: Outcome) -> bool:
    """Compare, except for what depends on Python's version."""
    if COMMA and "trailing comma" in wanted[1]:
        return found[0] == b"" and found[1].startswith("not JSON: expecting ")
    if re.search(r"\\[uU][0-9a-f]{4}", wanted[1]):  # C does not know all unassigned characters
        return found[0] == wanted[0]
    return found == wanted


@pytest.mark.parametrize("text", TEXTS)
def test_values_and_errors_are_those_of_python(parse, text) -> None:
    """Value, its text in messages, or the error."""
    assert same(parse(text), expected(text))


@pytest.mark.parametrize(
    "text",
    [b"[" + b"1," * 400_000 + b"1]", b"{" * 70, b" " * 100_000_001, b'["' + b"," * 500_000 + b'"]'],
    ids=["values", "levels", "bytes", "in text"],
)
def test_limits_are_those_of_python(parse, text) -> None:
    """Only strings may have more."""
    assert parse(text) == expected(text)


def test_many_members_take_little_time(parse) -> None:
    """A key that occurs twice is found among 190,000, without comparing all pairs."""
    keys = [f'"k{i}":0' for i in range(190_000)]
    text = ("{" + ",".join([*keys, '"k7":1']) + "}").encode()
    assert parse(text) == (b"", "key 'k7' occurs twice, expected once")


def test_random_values_are_equal(parse) -> None:
    """Random values, written in several ways."""
    rng = random.Random(5)
    for _ in range(300):
        value = random_value(rng, 4)
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1]))
        data = text.encode("utf-8", "replace")
        assert same(parse(data), expected(data)), data


def test_random_mutants_have_the_same_verdict(parse) -> None:
    """A text with bytes replaced, removed or inserted."""
    rng = random.Random(6)
    short = [text for text in TEXTS if 0 < len(text) < 400]
    for _ in range(6000):
        data = bytearray(rng.choice(short))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            piece = rng.choice([b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"1", b"e"])
            data[at : at + rng.randint(0, 2)] = rng.choice([piece, rng.randbytes(1)])
        assert same(parse(bytes(data)), expected(bytes(data))), bytes(data)


def random_value(rng: random.Random, depth: int) -> Any:
    """A value of each type."""
    kind = rng.randrange(8 if depth else 6)
    if kind < 3:
        return [None, True, False][kind]
    if kind == 3:
        return rng.randrange(-(1 << 70), 1 << 70) >> rng.randrange(70)
    if kind == 4:
        number = struct.unpack("d", rng.randbytes(8))[0]
        return number if abs(number) < float("inf") else rng.random()
    if kind == 5:
        return "".join(
            chr(rng.choice([rng.randrange(32, 127), rng.randrange(256), 0x4E2D, 0x1F600]))
            for _ in range(rng.randrange(12))
        )
    if kind == 6:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(5))]
    return {str(rng.random()): random_value(rng, depth - 1) for _ in range(rng.randrange(5))}

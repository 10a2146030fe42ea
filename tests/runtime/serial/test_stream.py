"""Reader and Writer: mirrors of each other; every length is checked before it is used."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

import runtime
from runtime import Reader, Writer
from runtime.serial.stream import FileRange


def written(write) -> bytes:
    """The bytes that a function writes."""
    writer = Writer()
    write(writer)
    return b"".join(writer.finish())


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("u64", 2**64 - 1),
        ("u32", 2**32 - 1),
        ("i64", -(2**63)),
        ("i32", -1),
        ("dtype", (2, 32, 0x1234)),
        ("string", "ядро 🚀 \0 end"),
    ],
)
def test_primitive_is_read_as_it_was_written(kind, value) -> None:
    """Each primitive is read as it was written, and nothing is left."""
    data = written(lambda w: getattr(w, f"write_{kind}")(value))
    reader = Reader(data)
    assert getattr(reader, f"read_{kind}")() == value
    assert reader.remaining == 0


@pytest.mark.parametrize("kind", ["u64", "u32", "i64", "i32", "dtype"])
def test_primitive_cut_short_is_refused(kind) -> None:
    """One byte less than a primitive needs is an error, not a short read."""
    size = {"u64": 8, "i64": 8}.get(kind, 4)
    reader = Reader(bytes(size - 1))
    with pytest.raises(runtime.BlobFormatError, match=rf"expected at most {size - 1} left"):
        getattr(reader, f"read_{kind}")()


@pytest.mark.parametrize("length", [4, 2**31, 2**32, 2**61, 2**63, 2**64 - 1])
@pytest.mark.parametrize("read", ["read_bytes", "read_string", "read_u64_vector"])
def test_length_beyond_the_end_is_refused_at_its_offset(read, length) -> None:
    """A length beyond the end allocates nothing; the error has its offset."""
    reader = Reader(bytes(8) + length.to_bytes(8, "little") + b"abc")
    reader.read_u64()
    with pytest.raises(runtime.BlobFormatError) as info:
        getattr(reader, read)()
    assert info.value.offset == 8
    assert "at 0x8: " in str(info.value)


def test_vector_count_is_bounded_by_the_least_element() -> None:
    """A count that does not fit in the rest is refused before anything is read."""
    reader = Reader((3).to_bytes(8, "little") + bytes(23))
    with pytest.raises(runtime.BlobFormatError, match="a count of 3 elements, expected at most 2"):
        reader.read_vector(reader.read_u64, 8)


@pytest.mark.parametrize("nbytes", [4, -1, 2**64, 2**200])
def test_bytes_beyond_the_end_are_refused(nbytes) -> None:
    """Also a number of them that no u64 has."""
    shown = nbytes if 0 <= nbytes < 2**64 else 2**64 - 1
    with pytest.raises(runtime.BlobFormatError, match=f"w of {shown} bytes, expected at most 3"):
        Reader(b"abc").read_raw(nbytes, "w")


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda r: r.read_count(0), "min_nbytes: 0, expected at least 1"),
        (lambda r: r.read_map(r.read_u64, -8), "min_nbytes: 0, expected at least 1"),
        (lambda r: r.part(1, 4), "part: from 1 to 4, expected a range of 3 bytes"),
        (lambda r: r.part(2, 1), "part: from 2 to 1"),
        (lambda r: setattr(r, "offset", 4), "offset: expected at most 3"),
        (lambda r: Reader(b"", dialect="x"), "dialect 'x' is not known; known: tvm, tvm-ffi"),
    ],
)
def test_wrong_use_of_a_reader_is_a_value_error(use, match) -> None:
    """A place outside of the bytes, an element of no bytes, an unknown dialect."""
    with pytest.raises(ValueError, match=match):
        use(Reader(b"abc"))


def test_error_of_a_path_without_a_form_in_utf8() -> None:
    """The message has the path as Python has it, and so have the errors of the core."""
    reader = Reader(b"abc", path="a\udcff", where="b\udcff")
    assert str(reader.error("c")) == "a\udcff: b\udcff at 0x0: c"
    with pytest.raises(runtime.BlobFormatError) as caught:
        reader.read_u64()
    assert caught.value.path == "a\udcff"
    assert str(Reader(b"", path=Path("x")).error("c")) == "x: blob at 0x0: c"


def test_any_buffer_is_read() -> None:
    """Of other elements, mapped or writable: as its bytes; not a strided one."""
    numbers = array("I", [7, 8])
    assert (Reader(numbers).read_u32(), Reader(memoryview(numbers)[1:]).read_u32()) == (7, 8)
    with pytest.raises(TypeError):
        Reader(memoryview(b"abcdef")[::2])


def test_vector_and_map_are_restored_in_order() -> None:
    """Order is the writer's; a reader keeps the first of duplicate keys."""
    data = written(
        lambda w: w.write_map({"b": [1, 2], "a": []}, lambda v: w.write_vector(v, w.write_u64))
    )
    reader = Reader(data)
    assert list(reader.read_map(reader.read_u64_vector).items()) == [("b", (1, 2)), ("a", ())]
    pair = written(lambda w: w.write_string("k"))
    double = Reader((2).to_bytes(8, "little") + pair + b"\1" + bytes(7) + pair + b"\2" + bytes(7))
    assert double.read_map(double.read_u64) == {"k": 1}


def test_bytes_are_views_not_copies() -> None:
    """A payload shares memory with the input, read-only."""
    data = bytearray((5).to_bytes(8, "little") + b"hello")
    view = Reader(data).read_bytes()
    data[8] = ord("J")
    assert bytes(view) == b"Jello"
    assert view.readonly


def test_text_that_is_not_utf8_is_refused() -> None:
    """Names must be UTF-8; the message shows the bytes."""
    reader = Reader((2).to_bytes(8, "little") + b"\xff\xfe", path="lib.so", where="__tvm_dev_mblob")
    message = r"lib\.so: __tvm_dev_mblob at 0x0: text b'\\xff\\xfe', expected UTF-8"
    with pytest.raises(runtime.BlobFormatError, match=message):
        reader.read_string()


def test_large_buffers_become_chunks_of_their_own() -> None:
    """Large buffers are passed without a copy; small writes are joined."""
    data = bytearray(100_000)
    writer = Writer()
    writer.write_u64(1)
    writer.write_string("x")
    writer.write_bytes(data)
    chunks = writer.finish()
    data[0] = 7
    assert [memoryview(c).nbytes for c in chunks] == [8 + 9 + 8, 100_000]
    assert chunks[1][0] == 7
    assert writer.offset == 100_025


def test_file_range_is_a_chunk_that_is_read_late(tmp_path) -> None:
    """A range of a file takes no memory until the library is written."""
    path = tmp_path / "weights"
    path.write_bytes(b"0123456789")
    writer = Writer()
    writer.write_u64(0)
    writer.write_file(path, 2, 5)
    assert writer.offset == 13
    chunk = writer.finish()[1]
    assert isinstance(chunk, FileRange)
    assert chunk.read() == b"23456"
    path.write_bytes(b"012")
    with pytest.raises(runtime.ExportError, match="changed while it was read"):
        chunk.read()


@pytest.mark.parametrize("before", range(0, 130, 13))
def test_align_counts_from_the_symbol(before) -> None:
    """The blob's symbol begins with the 8 bytes of nbytes."""
    writer = Writer()
    writer.write_raw(bytes(before))
    padding = writer.align(64)
    assert (8 + writer.offset) % 64 == 0
    assert padding == writer.offset - before < 64

"""Libraries of C: what is exported, what is refused and why, and ten lines that use each.

    python tests/stress/c_libraries.py [NAME...]

A reason counts by its words, without names and numbers.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import time
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

import packer
import runtime
from tests.support.c_library import Library
from tests.test_c_libraries import LIBRARIES as FIRST


def lz4(lib: Any, folder: Path) -> None:
    """Compress text, and back; a stream is freed by its handle."""
    text = b"lz4 " * 100
    packed, back = np.zeros(lib["LZ4_compressBound"](len(text)), np.int8), np.zeros(500, np.int8)
    count = lib["LZ4_compress_default"](text, packed, len(text), len(packed))
    assert 0 < count < 50
    assert lib["LZ4_decompress_safe"](packed[:count].tobytes(), back, count, len(back)) == len(text)
    assert back[: len(text)].tobytes() == text
    with lib["LZ4_createStream"]() as stream:
        assert lib["LZ4_saveDict"](stream, back, len(back)) == 0


def zstd(lib: Any, folder: Path) -> None:
    """Compress at the highest level, and back."""
    text = bytes(range(256)) * 50
    packed = np.zeros(lib["ZSTD_compressBound"](len(text)), np.uint8)
    count = lib["ZSTD_compress"](packed, len(packed), text, len(text), lib["ZSTD_maxCLevel"]())
    assert not lib["ZSTD_isError"](count) and count < 500
    assert lib["ZSTD_getFrameContentSize"](packed, count) == len(text)
    back = np.zeros(len(text), np.uint8)
    with lib["ZSTD_createDCtx"]() as context:
        assert lib["ZSTD_decompressDCtx"](context, back, len(back), packed, count) == len(text)
    assert back.tobytes() == text and lib.constants.ZSTD_btultra == 8


def jpeg(lib: Any, folder: Path) -> None:
    """Compress two rows into memory that the library allocates, and back."""
    errors = runtime.new(lib, "struct jpeg_error_mgr")
    data, size = runtime.new(lib, "unsigned char *"), runtime.new(lib, "unsigned long")
    c, version = runtime.new(lib, "struct jpeg_compress_struct"), lib.constants.JPEG_LIB_VERSION
    c.err = lib["jpeg_std_error"](errors)
    lib["jpeg_CreateCompress"](c, version, memoryview(c).nbytes)
    lib["jpeg_mem_dest"](c, data, size)
    c.image_width, c.image_height, c.input_components, c.in_color_space = 8, 2, 1, 1
    lib["jpeg_set_defaults"](c)
    lib["jpeg_start_compress"](c, True)
    rows = [np.full(8, 100, np.uint8), np.full(8, 100, np.uint8)]
    assert lib["jpeg_write_scanlines"](c, rows, 2) == 2
    lib["jpeg_finish_compress"](c)
    d = runtime.new(lib, "struct jpeg_decompress_struct", err=c.err)
    lib["jpeg_CreateDecompress"](d, version, memoryview(d).nbytes)
    file = np.array(data[0].array(size[0])[:], np.uint8)
    lib["jpeg_mem_src"](d, file, len(file))
    assert lib["jpeg_read_header"](d, True) == 1 and lib["jpeg_start_decompress"](d)
    row = np.zeros(8, np.uint8)
    assert lib["jpeg_read_scanlines"](d, [row], 1) == 1
    assert (d.image_width, d.image_height, abs(int(row[0]) - 100) < 3) == (8, 2, True)


def xxhash(lib: Any, folder: Path) -> None:
    """Hash at once, in pieces, and to a struct of 128 bits."""
    assert lib["XXH32"](b"", 0, 0) == 0x02CC5D05 and lib["XXH64"](b"", 0, 0) == 0xEF46DB3751D8E999
    state, text = lib["XXH64_createState"](), b"xxhash" * 99
    assert lib["XXH64_reset"](state, 7) == 0
    for i in range(0, len(text), 6):
        assert lib["XXH64_update"](state, text[i : i + 6], 6) == 0
    assert lib["XXH64_digest"](state) == lib["XXH64"](text, len(text), 7)
    lib["XXH64_freeState"](state)
    wide = lib["XXH3_128bits"](text, len(text))
    assert lib["XXH128_isEqual"](wide, wide) == 1 and wide.low64 != wide.high64


def fftw(lib: Any, folder: Path) -> None:
    """Transform complex numbers in place of pairs of doubles."""
    x, y = np.zeros(64, complex), np.zeros(64, complex)
    c = lib.constants
    plan = lib["fftw_plan_dft_1d"](64, x, y, c.FFTW_FORWARD, c.FFTW_ESTIMATE)
    x[:] = np.exp(2j * np.pi * 5 * np.arange(64) / 64) + np.arange(64)
    lib["fftw_execute"](plan)
    assert np.allclose(y, np.fft.fft(x))
    lib["fftw_destroy_plan"](plan)


def pcre2(lib: Any, folder: Path) -> None:
    """Find groups by number and by name."""
    text, pattern = b"born 1815-12-10", rb"(?<year>\d+)-(\d+)"
    error, offset = np.zeros(1, np.int32), np.zeros(1, np.uint64)
    code = lib["pcre2_compile_8"](pattern, len(pattern), 0, error, offset, None)
    data = lib["pcre2_match_data_create_from_pattern_8"](code, None)
    assert lib["pcre2_match_8"](code, text, len(text), 0, 0, data, None) == 3
    places = lib["pcre2_get_ovector_pointer_8"](data).array(6)[:]
    assert [text[a:b] for a, b in zip(places[::2], places[1::2], strict=True)] == [
        b"1815-12", b"1815", b"12"
    ]  # fmt: skip
    group, length = [None], np.zeros(1, np.uint64)
    assert lib["pcre2_substring_get_byname_8"](data, b"year\0", group, length) == 0
    assert bytes(group[0].array(int(length[0]))[:]) == b"1815"
    lib["pcre2_substring_free_8"](group[0])
    assert lib["pcre2_compile_8"](b"(", 1, 0, error, offset, None) is None and error[0] == 114


def sodium(lib: Any, folder: Path) -> None:
    """Encrypt, decrypt, refuse a changed text, and hash."""
    assert lib["sodium_init"]() in (0, 1)
    c = lib.constants
    key, nonce = np.zeros(32, np.uint8), np.zeros(24, np.uint8)
    lib["crypto_secretbox_keygen"](key)
    sealed, text = np.zeros(5 + c.crypto_secretbox_MACBYTES, np.uint8), np.zeros(5, np.uint8)
    assert lib["crypto_secretbox_easy"](sealed, b"hello", 5, nonce, key) == 0
    assert lib["crypto_secretbox_open_easy"](text, sealed, len(sealed), nonce, key) == 0
    assert text.tobytes() == b"hello"
    sealed[0] ^= 1
    assert lib["crypto_secretbox_open_easy"](text, sealed, len(sealed), nonce, key) == -1
    digest = np.zeros(32, np.uint8)
    lib["crypto_hash_sha256"](digest, b"abc", 3)
    assert digest.tobytes() == hashlib.sha256(b"abc").digest()


def git2(lib: Any, folder: Path) -> None:
    """Make two commits, of which one is the parent of the other."""
    assert lib["git_libgit2_init"]() >= 1
    _, repository = lib["git_repository_init"](str(folder / "repo"), 0)
    blob, tree_id, commit_id = (runtime.new(lib, "git_oid") for _ in range(3))
    assert lib["git_blob_create_from_buffer"](blob, repository, b"hello\n", 6) == 0
    assert lib["git_oid_tostr_s"](blob) == "ce013625030ba8dba906f756967f9e9ca394464a"
    _, builder = lib["git_treebuilder_new"](repository, None)
    _, _entry = lib["git_treebuilder_insert"](builder, "a.txt", blob, 0o100644)
    assert lib["git_treebuilder_write"](tree_id, builder) == 0
    _, tree = lib["git_tree_lookup"](repository, tree_id)
    _, author = lib["git_signature_new"]("Ada", "ada@example.org", 1, 0)
    given = ("HEAD", author, author, None)
    commit = lib["git_commit_create"]
    assert commit(commit_id, repository, *given, "first", tree, 0, None) == 0
    _, first = lib["git_commit_lookup"](repository, commit_id)
    assert commit(commit_id, repository, *given, "second", tree, 1, [first]) == 0
    _, second = lib["git_commit_lookup"](repository, commit_id)
    assert (lib["git_commit_message"](second), lib["git_commit_parentcount"](second)) == (
        "second",
        1,
    )
    assert lib["git_commit_author"](second).name == "Ada"


def openblas(lib: Any, folder: Path) -> None:
    """Multiply matrices, and complex vectors."""
    c, a, b = lib.constants, np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    out = np.zeros((2, 4))
    row, no = c.CblasRowMajor, c.CblasNoTrans
    lib["cblas_dgemm"](row, no, no, 2, 4, 3, 1, a, 3, b, 4, 0, out, 4)
    assert (out == a @ b).all()
    assert lib["cblas_dnrm2"](6, a, 1) == pytest.approx(np.linalg.norm(a))
    x = np.array([1 + 2j, 3 - 1j])
    result = np.zeros(1, complex)
    lib["cblas_zdotc_sub"](2, x, 1, x, 1, result)
    assert result[0] == np.vdot(x, x)


def rdkafka(lib: Any, folder: Path) -> None:
    """Deliver a message to the library's own test broker."""
    conf, text, reports = lib["rd_kafka_conf_new"](), np.zeros(200, np.int8), []
    for name, value in {"test.mock.num.brokers": "1", "log_level": "0"}.items():
        assert lib["rd_kafka_conf_set"](conf, name, value, text, 200) == 0
    lib["rd_kafka_conf_set_dr_msg_cb"](conf, lambda k, m, _: reports.append((m.err, m.len)))
    producer = lib["rd_kafka_new"](lib.constants.RD_KAFKA_PRODUCER, conf, text, 200)
    topic = lib["rd_kafka_topic_new"](producer, "greetings", None)
    payload = np.frombuffer(b"hello", np.uint8).copy()
    copy = lib.constants.RD_KAFKA_MSG_F_COPY
    assert lib["rd_kafka_produce"](topic, -1, copy, payload, 5, None, 0, None) == 0
    assert lib["rd_kafka_flush"](producer, 20000) == 0
    assert reports == [(0, 5)]
    lib["rd_kafka_topic_destroy"](topic)
    lib["rd_kafka_destroy"](producer)


def curl(lib: Any, folder: Path) -> None:
    """Download a file into Python through a callback."""
    (folder / "page.json").write_text('{"answer": 42}')
    easy, c, parts = lib["curl_easy_init"](), lib.constants, []

    def write(data: Any, size: int, count: int, seen: list[bytes]) -> int:
        seen.append(np.asarray(data).tobytes())
        return size * count

    lib["set_text"](easy, c.CURLOPT_URL, f"file://{folder}/page.json")
    lib["set_write"](easy, c.CURLOPT_WRITEFUNCTION, write)
    lib["set_data"](easy, c.CURLOPT_WRITEDATA, parts)
    assert lib["curl_easy_perform"](easy) == c.CURLE_OK
    assert json.loads(b"".join(parts)) == {"answer": 42}
    lib["set_text"](easy, c.CURLOPT_URL, f"file://{folder}/absent")
    status = lib["curl_easy_perform"](easy)
    assert status == c.CURLE_FILE_COULDNT_READ_FILE and lib["curl_easy_strerror"](status)
    lib["curl_easy_cleanup"](easy)


def gsl(lib: Any, folder: Path) -> None:
    """Integrate a Python function, and fill a matrix."""
    function = runtime.new(lib, "gsl_function", function=lambda x, _: x * np.exp(-x))
    workspace = lib["gsl_integration_workspace_alloc"](100)
    result, error = np.zeros(1), np.zeros(1)
    integrate = lib["gsl_integration_qagiu"]
    assert integrate(function, 0, 1e-9, 1e-9, 100, workspace, result, error) == 0
    assert result[0] == pytest.approx(1, abs=1e-8) and workspace.limit == 100
    lib["gsl_integration_workspace_free"](workspace)
    assert lib["gsl_sf_bessel_J0"](5) == pytest.approx(-0.17759677131433830)
    matrix = lib["gsl_matrix_calloc"](2, 3)
    lib["gsl_matrix_set"](matrix, 1, 2, 7)
    assert matrix.data.array(6)[:] == [0, 0, 0, 0, 0, 7] and matrix.size1 == 2


def stb(lib: Any, folder: Path) -> None:
    """Write a PNG into Python, and decode it."""
    pixels, parts = np.arange(24, dtype=np.uint8).reshape(2, 4, 3), []
    save = lib["stbi_write_png_to_func"]
    assert save(lambda _, data, size: parts.append(bytes(data)), None, 4, 2, 3, pixels, 12) == 1
    file = b"".join(parts)
    assert file[:4] == b"\x89PNG"
    width, height, channels = (np.zeros(1, np.int32) for _ in range(3))
    back = lib["stbi_load_from_memory"](file, len(file), width, height, channels, 0)
    assert (int(width[0]), int(height[0]), int(channels[0])) == (4, 2, 3)
    assert back.array(24)[:] == pixels.ravel().tolist()
    lib["stbi_image_free"](back)


def miniz(lib: Any, folder: Path) -> None:
    """Compress text, and back; write a zip into memory, and read it."""
    text, c = b"miniz " * 200, lib.constants
    packed, back = np.zeros(lib["mz_compressBound"](len(text)), np.uint8), np.zeros(1200, np.uint8)
    size, count = np.array([len(packed)], np.uint64), np.array([1200], np.uint64)
    assert lib["mz_compress"](packed, size, text, len(text)) == c.MZ_OK and size[0] < 50
    assert lib["mz_uncompress"](back, count, packed, int(size[0])) == c.MZ_OK
    assert back.tobytes() == text and lib["mz_error"](c.MZ_DATA_ERROR) == "data error"
    writer, reader = (runtime.new(lib, "mz_zip_archive") for _ in range(2))
    data, size = runtime.new(lib, "void *"), runtime.new(lib, "size_t")
    assert lib["mz_zip_writer_init_heap"](writer, 0, 0)
    assert lib["mz_zip_writer_add_mem"](writer, "a.txt", text, len(text), c.MZ_BEST_SPEED)
    assert lib["mz_zip_writer_finalize_heap_archive"](writer, data, size)
    assert lib["mz_zip_reader_init_mem"](reader, data[0], size[0], 0)
    found = runtime.new(lib, "mz_zip_archive_file_stat")
    assert lib["mz_zip_reader_file_stat"](reader, 0, found)
    assert (found.m_filename, found.m_uncomp_size) == ("a.txt", len(text))
    back[:], flags = 0, c.MZ_ZIP_FLAG_COMPRESSED_DATA
    assert lib["mz_zip_reader_extract_to_mem"](reader, 0, packed, len(packed), flags)
    inflate = lib["tinfl_decompress_mem_to_mem"]
    assert inflate(back, len(back), packed, found.m_comp_size, 0) == len(text)
    assert back.tobytes() == text and lib["mz_zip_writer_end"](writer)


_SET = {"symbol": "curl_easy_setopt"}
LIBRARIES = {
    **FIRST,
    "lz4": Library(
        "liblz4-dev", ("lz4.h",), ("lz4",), lz4, {"LZ4_createStream": {"free": "LZ4_freeStream"}}
    ),
    "zstd": Library(
        "libzstd-dev", ("zstd.h",), ("zstd",), zstd, {"ZSTD_createDCtx": {"free": "ZSTD_freeDCtx"}}
    ),
    "jpeg": Library(
        "libjpeg-dev", ("jpeglib.h",), ("jpeg",), jpeg, options=("-include", "stdio.h")
    ),
    "xxhash": Library("libxxhash-dev", ("xxhash.h",), ("xxhash",), xxhash),
    "fftw": Library("libfftw3-dev", ("fftw3.h",), ("fftw3",), fftw),
    "pcre2": Library(
        *("libpcre2-dev", ("pcre2.h",), ("pcre2-8",), pcre2),
        options=("-DPCRE2_CODE_UNIT_WIDTH=8",),
    ),
    "libsodium": Library("libsodium-dev", ("sodium.h",), ("sodium",), sodium),
    "libgit2": Library("libgit2-dev", ("git2.h",), ("git2",), git2),
    "OpenBLAS": Library("libopenblas-dev", ("x86_64-linux-gnu/cblas.h",), ("openblas",), openblas),
    "librdkafka": Library(
        *("librdkafka-dev", ("librdkafka/rdkafka.h",), ("rdkafka",), rdkafka),
        {"rd_kafka_conf_set_dr_msg_cb": {"kept": "forever"}},
    ),
    "libcurl": Library(
        *("libcurl4-openssl-dev", ("x86_64-linux-gnu/curl/curl.h",), ("curl",), curl),
        {
            "set_text": {**_SET, "declaration": "CURLcode(CURL *h, CURLoption o, const char *s)"},
            "set_data": {
                **_SET,
                "declaration": "CURLcode(CURL *h, CURLoption o, void *data)",
                "kept": "h",
            },
            "set_write": {
                **_SET,
                "declaration": "CURLcode(CURL *h, CURLoption o, size_t (*write)(char"
                " data[count][size], size_t size, size_t count, void *user))",
                "kept": "h",
            },
        },
        ("-DCURL_STRICTER",),
    ),
    "GSL": Library(
        "libgsl-dev",
        ("gsl/gsl_integration.h", "gsl/gsl_sf_bessel.h", "gsl/gsl_matrix_double.h"),
        ("gsl", "gslcblas"),
        gsl,
    ),
    "stb": Library(
        *("libstb-dev", ("stb/stb_image.h", "stb/stb_image_write.h"), (), stb),
        {
            "stbi_write_png_to_func": {
                "declaration": "int(void (*write)(void *user, unsigned char data[n], int n),"
                " void *user, int w, int h, int comp, const void *data, int stride)"
            }
        },
        ("-DSTB_IMAGE_IMPLEMENTATION", "-DSTB_IMAGE_WRITE_IMPLEMENTATION", "-lm", "-w"),
    ),
    "miniz": Library(
        *("npm:pngdefry@1.1.7", ("lib/pngdefry/source/miniz.c",), (), miniz), options=("-w",)
    ),
}


def run(name: str) -> bool:
    """Export, use and describe one library; return True if the use is right."""
    library, start, is_right = LIBRARIES[name], time.monotonic(), True
    with TemporaryDirectory() as folder:
        if library.package.startswith("npm:"):
            library = fetched(library, Path(folder))
        module = library.module()
        loaded = runtime.load(packer.export_library(module, Path(folder, "own.so")))
        seconds = time.monotonic() - start
        try:
            library.use(loaded, Path(folder))
        except Exception:
            traceback.print_exc()
            is_right = False
    reasons = Counter(words_of(reason) for reason in module.left_out.values())
    exported = sum(not d.name.startswith("_packer_") for d in module.functions)
    texts = [f"{count} {text}" for text, count in reasons.most_common()]
    left_out = f"{len(module.left_out)} ({'; '.join(texts)})" if texts else "0"
    verdict = "used" if is_right else "FAILED"
    print(f"| {name} | {exported} | {left_out} | {seconds:.1f} | {verdict} |", flush=True)
    return is_right


def fetched(library: Library, folder: Path) -> Library:
    """Unpack the npm package of a library that Debian does not have."""
    name = library.package.removeprefix("npm:")
    subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    return library._replace(headers=tuple(f"{folder}/package/{path}" for path in library.headers))


def words_of(reason: str) -> str:
    """Return the words of a reason."""
    head = re.split(r"[;,]", reason)[0]
    return re.sub(r"parameter \d+ '[^']*': |result: |: \".*", "", head).strip()


def main(names: list[str]) -> int:
    """Print a row for each library."""
    print("| library | exported | left out | seconds | ten lines |\n|---|---|---|---|---|")
    results = [run(name) for name in names or LIBRARIES]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

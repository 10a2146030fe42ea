"""Write a wheel: a zip file with the same bytes for the same contents."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import stat
import time
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from runtime.error import ExportError

from ...toolchain.reproducible import source_date_epoch

_PIECE_NBYTES = 1 << 20
_LARGE_NBYTES = 16 << 20
# A zip file has the times from 1980-01-01 to the last even second of 2107.
_EARLIEST, _LATEST = 315_532_800, 4_354_819_198


def write_archive(output: Path, files: Mapping[str, str | bytes | Path], dist_info: str) -> None:
    """Write the files of a wheel, then its RECORD, in the folder `dist_info`.

    The order is that of the mapping, all files have one time and one of two modes, and no file is
    held in memory as a whole: a Path is a file to copy. The compressed bytes depend on the zlib of
    this Python. Raises ExportError if SOURCE_DATE_EPOCH is not a number of seconds, or after 2107.
    """
    when = _date()
    rows: list[tuple[str, str, str]] = []
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            rows.append(_add(archive, _information(name, when), content))
        record = f"{dist_info}/RECORD"
        rows.append((record, "", ""))
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        _add(archive, _information(record, when), text.getvalue())


def _date() -> tuple[int, ...]:
    """Return the time that all files get: https://reproducible-builds.org/specs/source-date-epoch."""
    seconds = source_date_epoch()
    if seconds > _LATEST:
        text = f"SOURCE_DATE_EPOCH='{seconds}': a wheel is a zip file, expected at most {_LATEST}"
        raise ExportError(f"{text}, the end of 2107; set an earlier time, or unset it")
    return time.gmtime(max(seconds, _EARLIEST))[:6]


def _information(name: str, when: tuple[int, ...]) -> zipfile.ZipInfo:
    information = zipfile.ZipInfo(name, (when[0], when[1], when[2], when[3], when[4], when[5]))
    mode = 0o755 if name.endswith(".so") or ".so." in name else 0o644
    information.create_system = 3  # Unix: the mode counts
    information.external_attr = (stat.S_IFREG | mode) << 16
    information.compress_type = zipfile.ZIP_DEFLATED
    return information


def _add(
    archive: zipfile.ZipFile, information: zipfile.ZipInfo, content: str | bytes | Path
) -> tuple[str, str, str]:
    """Add a file, and return its row of RECORD."""
    if isinstance(content, Path):
        with content.open("rb") as source:
            information.file_size = os.fstat(source.fileno()).st_size  # zip64 if it is large
            if _is_dense(source, information.file_size):
                information.compress_type = zipfile.ZIP_STORED
            return _copy(archive, information, source)
    data = content.encode() if isinstance(content, str) else content
    return _copy(archive, information, io.BytesIO(data))


def _is_dense(source: IO[bytes], nbytes: int) -> bool:
    """Return True if a large file shrinks by less than a tenth: weights, and in minutes per GiB."""
    if nbytes < _LARGE_NBYTES:
        return False
    source.seek(nbytes // 2)
    sample = source.read(_PIECE_NBYTES)
    source.seek(0)
    return len(zlib.compress(sample, 1)) > 0.9 * len(sample)


def _copy(
    archive: zipfile.ZipFile, information: zipfile.ZipInfo, source: IO[bytes]
) -> tuple[str, str, str]:
    digest, nbytes = hashlib.sha256(), 0
    with archive.open(information, "w") as target:
        while piece := source.read(_PIECE_NBYTES):
            digest.update(piece)
            nbytes += target.write(piece)
    encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    return information.filename, f"sha256={encoded}", str(nbytes)

"""A wheel that packer writes: its files, the judgement of other tools, and its use."""

from __future__ import annotations

import base64
import csv
import email
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

from ....support import needs
from ....support.compile import compile_c
from ....support.paths import ROOT
from .installation import install, run, tool

LICENSE = ROOT / "LICENSE"
SECOND = "int64_t twice(int64_t a) { return 2 * a; }"


@pytest.fixture
def wheel(library, tmp_path) -> Path:
    """A wheel with all its metadata."""
    return packer.write_wheel(
        library, tmp_path / "dist", name="Geo-tools", version="1.0.0-rc1", package="geo",
        description="Means and roots.", license="apache-2.0 or mit", license_files=[LICENSE],
        author="A Person <person@example.org>", url="https://example.org", requires=["numpy>=1.26"],
    )  # fmt: skip


def read(wheel: Path, name: str) -> str:
    """Return a file of a wheel as text."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode()


def test_record_has_every_file_with_its_digest(wheel) -> None:
    """In the order of the archive, and itself last, without one."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert names[-1] == "geo_tools-1.0.0rc1.dist-info/RECORD"
        rows = list(csv.reader(archive.read(names[-1]).decode().splitlines()))
        assert [row[0] for row in rows] == names
        assert rows.pop()[1:] == ["", ""]
        for name, digest, nbytes in rows:
            data = archive.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, nbytes) == (f"sha256={found}", str(len(data)))


def test_metadata_is_normalised(wheel) -> None:
    """The name stays; version, licence and requirements are written as their standards do."""
    info = "geo_tools-1.0.0rc1.dist-info"
    metadata = email.message_from_string(read(wheel, f"{info}/METADATA"))
    assert metadata.get_all("Requires-Dist") == [
        f"dso-runtime>={runtime.__version__}",
        "numpy>=1.26",
    ]
    fields = dict(metadata.items())
    expected = {
        "Metadata-Version": "2.4",
        "Name": "Geo-tools",
        "Version": "1.0.0rc1",
        "Summary": "Means and roots.",
        "License-Expression": "Apache-2.0 OR MIT",
        "License-File": "LICENSE",
        "Author-email": "A Person <person@example.org>",
        "Project-URL": "Homepage, https://example.org",
        "Requires-Python": ">=3.11",
    }
    assert {name: fields[name] for name in expected} == expected
    assert "- `double mean(const double *x, int64_t n)`" in metadata.get_payload()
    assert read(wheel, f"{info}/licenses/LICENSE") == LICENSE.read_text()
    lines = read(wheel, f"{info}/WHEEL").splitlines()
    tags = {line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")}
    compressed = wheel.name.removesuffix(".whl").split("-")[-1].split(".")
    assert tags == {f"py3-none-{tag}" for tag in compressed}
    assert "Root-Is-Purelib: false" in lines


def test_equal_inputs_give_equal_bytes(library, tmp_path, monkeypatch) -> None:
    """At another time, in another folder, under another umask; SOURCE_DATE_EPOCH is the time."""
    made = []
    for number, umask in enumerate((0o022, 0o077)):
        folder = tmp_path / str(number)
        folder.mkdir()
        old = os.umask(umask)
        try:
            copy = Path(shutil.copyfile(library, folder / library.name))
            os.utime(copy, (number, number))
            made.append(packer.write_wheel(copy, folder / "dist", name="geo", version="1"))
        finally:
            os.umask(old)
    assert made[0].read_bytes() == made[1].read_bytes()
    with zipfile.ZipFile(made[0]) as archive:
        assert {item.date_time for item in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {item.external_attr >> 16 for item in archive.infolist()} == {0o100644, 0o100755}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    packer.write_wheel(library, tmp_path, name="geo", version="1")
    (later,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(later) as archive:
        assert {item.date_time for item in archive.infolist()} == {(2001, 9, 9, 1, 46, 40)}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "now")
    with pytest.raises(packer.ExportError, match="SOURCE_DATE_EPOCH='now', expected seconds"):
        packer.write_wheel(library, tmp_path, name="geo", version="1")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "7258118400")
    text = (
        "'7258118400': a wheel is a zip file, expected at most 4354819198, the end of 2107; set an"
    )
    with pytest.raises(packer.ExportError, match=text):
        packer.write_wheel(library, tmp_path, name="geo", version="1")


def test_large_weights_are_stored_as_they_are(tmp_path) -> None:
    """To compress floats takes minutes per GiB and saves little; zeros are compressed."""
    compressed = {}
    contents = {"dense": np.random.default_rng(0).bytes(20 << 20), "zeros": bytes(20 << 20)}
    for name, data in contents.items():
        module = runtime.DeviceModule("cuda", data, "ptx", [])
        path = packer.export_library(module, tmp_path / f"{name}.so")
        wheel = packer.write_wheel(path, tmp_path, name=name, version="1")
        with zipfile.ZipFile(wheel) as archive:
            assert archive.testzip() is None
            compressed[name] = archive.getinfo(f"{name}/{name}.so").compress_type
    assert compressed == {"dense": zipfile.ZIP_STORED, "zeros": zipfile.ZIP_DEFLATED}


def test_auditwheel_leaves_it(wheel, tmp_path) -> None:
    """It finds the tag that the wheel has, and repairs nothing."""
    shown = " ".join(tool("auditwheel", "show", wheel, group="test").split())
    tags = wheel.name.removesuffix(".whl").split("-")[-1].split(".")
    assert any(f'following platform tag: "{tag}"' in shown for tag in tags)
    tool("auditwheel", "repair", "-w", tmp_path, wheel, group="test")
    repaired = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(repaired) as after:
        names = {n for n in before.namelist() if not n.endswith(("RECORD", "WHEEL"))}
        assert all(before.read(name) == after.read(name) for name in names)


def test_twine_and_check_wheel_contents_accept_it(wheel) -> None:
    """As PyPI would, and without files that should not be in a wheel."""
    assert "PASSED" in tool("twine", "check", "--strict", wheel)
    assert "OK" in tool("check_wheel_contents", wheel)


USE = """
import array, json, sys
import geo
loaded = "model" in vars(geo)
x = array.array("d", [1, 2, 6])
refused = ""
try:
    geo.maen
except AttributeError as error:
    refused = str(error)
found = [loaded, geo.mean(x, 3), geo.root(9.0), geo.model["root"](4.0), geo.__version__, refused]
names = [n for n in dir(geo) if n[0] != "_"], geo.__all__
print(json.dumps([*found, *names, [m for m in sys.modules if m in ("packer", "llvmlite")]]))
"""


def test_installed_package_without_packer(environment, wheel, tmp_path) -> None:
    """Its functions are attributes; the library is loaded on first use."""
    install(environment, "--no-deps", wheel)
    found = json.loads(run(environment, "-c", USE))
    loaded, mean, *others, public, functions, imported = found
    assert not loaded
    assert mean == 3
    assert others == [3, 2, "1.0.0rc1", "module 'geo' has no attribute 'maen'"]
    assert functions == ["mean", "root"]
    assert public == ["mean", "model", "root"]
    assert imported == []


def test_several_libraries_are_modules(environment, library, tmp_path) -> None:
    """Each loads its own library."""
    code = f"#include <stdint.h>\n{SECOND}"
    module = packer.CSourceModule(code, functions="auto")
    second = packer.export_library(module, tmp_path / "libwhole.so")
    wheel = packer.write_wheel([library, second], tmp_path, name="pair", version="2")
    install(environment, "--no-deps", wheel)
    code = "import pair; print(pair.whole.twice(4), pair.model.root(4.0), pair.__version__)"
    assert run(environment, "-c", code) == "8 2.0 2\n"
    code = "from pair import *; print(whole.__all__, model.__all__, hasattr(whole, '__version__'))"
    assert run(environment, "-c", code) == "['twice'] ['mean', 'root'] False\n"


TYPED = """
import array
import geo

mean: float = geo.mean(array.array("d", [1, 2]), 2)
other: float = geo.model["root"](mean)
version: str = geo.__version__
"""


def test_type_checker_knows_the_functions(wheel, tmp_path) -> None:
    """Mypy --strict accepts the use, and finds a misspelt function and a wrong argument."""
    needs.importable("mypy", "check")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    environment = {**os.environ, "MYPYPATH": str(tmp_path / "site")}

    def check(code: str) -> str:
        (tmp_path / "use.py").write_text(code)
        command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "use.py"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        ).stdout

    assert check(TYPED) == ""
    wrong = check('import geo\ngeo.maen()\ngeo.root("2")\ngeo.model["maen"]\n')
    assert [line.split(":")[1] for line in wrong.splitlines() if "error" in line] == ["2", "3", "4"]


PALETTE = """
import runtime

class Palette(runtime.Module):
    type_key = "geo.palette"
    property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE

    def find_function(self, name):
        return (lambda: "blue") if name == "colour" else None

    def save_to_binary(self, writer):
        writer.write_u64(7)

@runtime.register_loader("geo.palette")
def load(reader):
    reader.read_u64()
    return Palette()
"""


def test_loader_of_another_module_type(environment, tmp_path) -> None:
    """The package brings it, and the runtime finds it by the entry point."""
    (tmp_path / "palette.py").write_text(PALETTE)
    code = "import palette, packer; packer.export_library(palette.Palette(), 'colours.so')"
    run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    library, notes = tmp_path / "colours.so", []
    packer.write_wheel(library, tmp_path, name="colours", version="1", note=notes.append)
    assert any("nothing in the package loads the type geo.palette; --loader" in n for n in notes)
    wheel = packer.write_wheel(
        library, tmp_path, name="colours", version="1", include=[tmp_path / "palette.py"],
        loaders={"geo.palette": "colours.palette:load"},
    )  # fmt: skip
    install(environment, "--no-deps", "--force-reinstall", wheel)
    assert run(environment, "-c", "import colours; print(colours.colour())") == "blue\n"


def test_library_that_declares_nothing(tmp_path) -> None:
    """The package is empty, so there is a note; weights alone need no function."""
    notes: list[str] = []
    path = compile_c("int f(int a) { return a; }", tmp_path / "plain.so")
    packer.write_wheel(path, tmp_path, name="plain", version="1", note=notes.append)
    assert notes == [
        "plain.so: it declares no function, so plain has none; packer export --function declares "
        "some"
    ]
    module = runtime.DeviceModule("cuda", b"payload", "ptx", [])
    path = packer.export_library(module, tmp_path / "weights.so")
    packer.write_wheel(path, tmp_path, name="plain", version="1", note=notes.append)
    assert len(notes) == 1


def test_version_and_license_of_the_library(tmp_path) -> None:
    """As its metadata says, unless others are given; several libraries agree."""
    paths = []
    for number in ("1.5", "1.6"):
        module = packer.CSourceModule("int f(int a) { return a; }", functions="auto")
        metadata = {"version": number, "license": "MIT"}
        path = tmp_path / f"a{number[-1]}.so"
        paths.append(packer.export_library(module, path, output=packer.Output(metadata=metadata)))
    wheel = packer.write_wheel(paths[0], tmp_path, name="own")
    assert wheel.name.startswith("own-1.5-py3-none-")
    assert "License-Expression: MIT\n" in read(wheel, "own-1.5.dist-info/METADATA")
    with pytest.raises(packer.ExportError, match=r"version: .* found '1.5' of a5.so, '1.6' of a6"):
        packer.write_wheel(paths, tmp_path, name="own")
    wheel = packer.write_wheel(paths, tmp_path, name="own", version="2", license="Apache-2.0")
    assert "License-Expression: Apache-2.0\n" in read(wheel, "own-2.dist-info/METADATA")

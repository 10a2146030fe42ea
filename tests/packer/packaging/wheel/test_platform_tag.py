"""The platform tag of a library, beside auditwheel's policy and real compilers."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest

import packer
import runtime
from packer.packaging.wheel import platform_of
from packer.packaging.wheel.manylinux import first_tag, tag_of_library, tag_of_version

from ....support import needs
from ....support.compile import compile_c

# Where the policy follows the first distribution that has a machine, and glibc and GCC are earlier.
OLDER = {"GLIBC_ABI_DT_RELR", "GLIBCXX_3.4.33"}
HERE = platform.machine()


def policies() -> list[dict]:
    """Auditwheel's policies, the one of the oldest glibc first."""
    folder = Path(needs.module("auditwheel", "test").__file__).parent / "policy"
    found = json.loads((folder / "manylinux-policy.json").read_text())
    return [policy for policy in found if policy["name"] != "linux"]


def glibc_of(policy: dict) -> tuple[int, ...]:
    """Return the glibc that the name of a policy has."""
    return tuple(int(part) for part in policy["name"].split("_")[1:])


def auditwheel_tag(version: str, machine: str) -> tuple[int, ...] | None:
    """Return the first policy of a machine that allows a symbol version."""
    prefix, _, number = version.partition("_")
    for policy in policies():
        versions = policy["symbol_versions"].get(machine)
        if versions is not None and number in versions.get(prefix, [number]):
            return glibc_of(policy)
    return None


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64", "loongarch64"])
def test_versions_need_the_tag_that_auditwheel_says(machine) -> None:
    """No tag is too old. On x86-64 none is newer than needed either."""
    tables = [p["symbol_versions"][machine] for p in policies() if machine in p["symbol_versions"]]
    versions = {f"{prefix}_{v}" for t in tables for prefix, all_ in t.items() for v in all_}
    assert len(versions) > 50
    first = first_tag(machine)
    ours = {v: max(first, tag_of_version(v)) for v in versions}
    theirs = {v: auditwheel_tag(v, machine) for v in versions}
    assert {v for v in versions if ours[v] < theirs[v]} <= OLDER
    if machine == "x86_64":
        assert ours == theirs


def test_newer_versions_than_the_policy_knows() -> None:
    """Versions of glibc are tags of PEP 600; libstdc++'s need a table that has them."""
    assert tag_of_version("GLIBC_2.99") == (2, 99)
    assert tag_of_version("GLIBCXX_3.4.99") is None
    assert tag_of_version("GLIBC_PRIVATE") is None
    assert tag_of_version("OPENSSL_3.0.0") == (2, 5)


def test_allowed_libraries_are_those_of_auditwheel() -> None:
    """Of each policy, and no others."""
    for policy in policies():
        ours = {name: tag_of_library(name) for name in policies()[-1]["lib_whitelist"]}
        allowed = {name for name, tag in ours.items() if tag and tag <= glibc_of(policy)}
        assert allowed == set(policy["lib_whitelist"])
    assert tag_of_library("libssl.so.3") is None
    assert tag_of_library("ld-linux-x86-64.so.2") == (2, 5)


@pytest.mark.skipif(HERE != "x86_64", reason="the versions are for x86-64")
@pytest.mark.parametrize(
    ("source", "options", "tag", "because"),
    [
        ("int f(int a) { return a; }", (), "manylinux_2_5", ""),
        ("float powf(float, float); float f(float a) { return powf(a, a); }", ("-lm",),
         "manylinux_2_27", "GLIBC_2.27 of libm.so.6 (powf)"),
        ("int timespec_get(void *, int); int f(void *a) { return timespec_get(a, 1); }", (),
         "manylinux_2_17", "GLIBC_2.16 of libc.so.6 (timespec_get)"),
    ],
)  # fmt: skip
def test_tag_is_that_of_the_newest_symbol(tmp_path, source, options, tag, because) -> None:
    """With the symbol as the reason."""
    found = platform_of([compile_c(source, tmp_path / "a.so", *options)])
    assert found.tags[0] == f"{tag}_x86_64"
    assert because in "".join(found.because)
    assert bool(because) == bool(found.because)
    assert found.is_portable


def test_a_library_that_not_every_system_has(tmp_path) -> None:
    """Then the wheel is for this system only, and the library is named."""
    compile_c("int g(void) { return 1; }", tmp_path / "libg.so", "-Wl,-soname,libg.so.1")
    source = "int g(void); int f(void) { return g(); }"
    path = compile_c(source, tmp_path / "a.so", f"-L{tmp_path}", "-lg")
    found = platform_of([path])
    assert found.tags == (f"linux_{HERE}",)
    assert not found.is_portable
    (reason,) = found.because
    assert reason.startswith(f"{path} needs libg.so.1, which not every system has; `auditwheel")
    both = platform_of([path, tmp_path / "libg.so"])
    assert both.is_portable


@pytest.mark.skipif(HERE != "x86_64", reason="the levels are for x86-64")
def test_library_that_is_marked_for_newer_processors(tmp_path) -> None:
    """The linker's mark is read; auditwheel reads it too."""
    code = "int f(int a) { return a; }"
    path = compile_c(code, tmp_path / "a.so", "-Wl,-z,x86-64-v3")
    assert "x86-64-v3" in subprocess.check_output(["readelf", "-nW", path], text=True)
    found = platform_of([path])
    assert found.tags == ("linux_x86_64",)
    assert "a.so needs a processor of x86-64-v3, which no tag can say" in found.because[0]
    assert platform_of([compile_c(code, path)]).is_portable


def test_library_for_musl(tmp_path) -> None:
    """Musl's compiler on Debian names libc.so, as zig does."""
    needs.program("musl-gcc")
    source = tmp_path / "a.c"
    source.write_text("#include <stdlib.h>\nvoid *f(int a) { return malloc(a); }")
    path = tmp_path / "a.so"
    subprocess.run(["musl-gcc", "-shared", "-fPIC", source, "-o", path], check=True)
    assert platform_of([path]).tags == (f"musllinux_1_2_{HERE}",)
    glibc = compile_c(source.read_text(), tmp_path / "g.so")
    with pytest.raises(packer.ExportError, match="a.so: needs musl, and .*g.so needs glibc; make"):
        platform_of([glibc, path])


def test_library_of_another_machine(tmp_path) -> None:
    """It is measured as one of this machine; a wheel has one machine only."""
    needs.program("aarch64-linux-gnu-gcc")
    module = packer.CSourceModule("int f(int a) { return a; }", functions="auto")
    path = packer.export_library(
        module, tmp_path / "arm.so", build=packer.Build(target="aarch64-linux-gnu")
    )
    assert platform_of([path]).tags == ("manylinux_2_17_aarch64", "manylinux2014_aarch64")
    here = compile_c("int g(void) { return 1; }", tmp_path / "g.so")
    with pytest.raises(packer.ExportError, match="g.so: compiled for x86_64, expected aarch64 as"):
        platform_of([path, here])


def test_weights_alone_need_no_c_library(tmp_path) -> None:
    """So that one wheel is for glibc and for musl."""
    module = runtime.DeviceModule("cuda", b"payload", "ptx", [])
    path = packer.export_library(module, tmp_path / "weights.so")
    tags = platform_of([path]).tags
    assert tags[0].startswith("manylinux_2_")
    assert tags[-1] == f"musllinux_1_2_{HERE}"

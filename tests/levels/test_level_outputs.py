"""CPU levels in objects, archives and tars; on the command line; in packer.toml."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

import packer
import runtime

from ..support import needs
from ..support.command_line import COMMAND
from .levels import SOURCE, export, require_levels, run_python

needs.hardware(os.uname().machine == "x86_64", "x86-64")


def run_packer(*words: str, cwd) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    command = [*COMMAND, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


TWO = ("x86-64-v1", "x86-64-v2")


@pytest.mark.parametrize("suffix", ["o", "a", "tar"])
def test_deferred_link(suffix, tmp_path) -> None:
    """`packer link` makes the same library of it, record included."""
    made = export(tmp_path, SOURCE, name=f"model.{suffix}", build=packer.Build(cpu=TWO))
    path = packer.link_library([made], tmp_path / "model.so")
    report = packer.inspect_library(path)
    assert report.cpu is not None
    assert report.cpu.levels == TWO
    for level in TWO:
        assert run_python(path, "print(m['level'](), m['count']())", level=level) == (
            f"{level[-1]} 41"
        )


def test_two_system_libraries_in_one_library(tmp_path) -> None:
    """Each has its levels, under its prefix, and chooses."""
    needs.program("gcc")
    models = []
    for number in (1, 2):
        prefix = f"net{number}_"
        options = {"system_lib": True, "c_symbol_prefix": prefix}
        models.append(
            export(tmp_path, SOURCE, name=f"{prefix}.o", **options, build=packer.Build(cpu=TWO))
        )
    main = tmp_path / "main.c"
    main.write_text(
        "#include <stdio.h>\nlong net1_level(void); long net2_level(void); int names;\n"
        "int TVMBackendRegisterSystemLibSymbol(const char *n, void *p) {"
        " (void)n, (void)p; return names++ < 0; }\n"
        'int main(void) { printf("%ld %ld\\n", net1_level(), net2_level()); return !names; }\n'
    )
    subprocess.run(["gcc", main, *models, "-o", tmp_path / "main"], check=True)
    for level in TWO:
        env = os.environ | {"DSO_CPU": level}
        found = subprocess.check_output([tmp_path / "main"], text=True, env=env)
        assert found == f"{level[-1]} {level[-1]}\n"


def test_declared_visibility(tmp_path) -> None:
    """The record stays visible; variables do not."""
    path = export(
        tmp_path, SOURCE, output=packer.Output(visibility="declared"), build=packer.Build(cpu=TWO)
    )
    names = subprocess.check_output(["nm", "-D", "--defined-only", path], text=True).split()
    assert "__packer_cpu_levels" in names
    assert "counter" not in names
    assert runtime.load(path)["level"]() == 2


def test_weights_alone_ignore_levels(tmp_path) -> None:
    """There is no host code."""
    module = runtime.ConstLoaderModule({}, {})
    path = packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu=TWO))
    assert packer.inspect_library(path).cpu is None


def test_command_line(tmp_path) -> None:
    """`--cpu` takes names, separated by commas; inspect shows them."""
    (tmp_path / "a.c").write_text(SOURCE)
    exported = run_packer("export", "a.so", "a.c", "--cpu", "x86-64-v2,x86-64-v1", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    shown = run_packer("inspect", "a.so", cwd=tmp_path).stdout
    assert "cpu: x86-64-v1, x86-64-v2; a load uses the best" in shown
    report = json.loads(run_packer("inspect", "--json", "a.so", cwd=tmp_path).stdout)
    assert report["cpu"]["levels"] == [*TWO]
    wrong = run_packer("export", "b.so", "a.c", "--cpu", "x86-64-v7", cwd=tmp_path)
    assert (wrong.returncode, "unknown level" in wrong.stderr) == (1, True)


@pytest.mark.parametrize(
    ("value", "levels"), [('["x86-64-v1"]', ("x86-64-v1",)), ('"native"', ("native",))]
)
def test_project(value, levels, tmp_path) -> None:
    """`cpu` in [library]; an option of the command replaces it."""
    require_levels("x86-64-v2")
    (tmp_path / "a.c").write_text(SOURCE)
    (tmp_path / "packer.toml").write_text(
        f'[library]\noutput = "a.so"\ncpu = {value}\n'
        '[module.host]\nkind = "c"\nsources = ["a.c"]\nfunctions = "auto"\n'
    )
    for options, expected in (
        ((), (value.strip('["]'),)),
        (("--cpu", "x86-64-v2"), ("x86-64-v2",)),
    ):
        ran = run_packer("export", *options, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        cpu = packer.inspect_library(tmp_path / "a.so").cpu
        assert cpu is not None
        assert cpu.levels == expected

"""Importers of other distributions, which register them as entry points."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[3] / "examples/own_importer"
PROJECT = '[library]\noutput = "c.so"\n[module.c]\nkind = "table"\nmodel = "curve.csv"\n'
ROWS = "0,1\n2,5\n"
HALF = "import runtime; print(runtime.load('c.so')['curve'](0.5))"
OTHERS = {
    "broken": "raise RuntimeError('no compiler for it')",
    "slow": "import time; time.sleep(1.2)\nIMPORTER = packer.Importer('slow', {}, print)",
    "none": "IMPORTER = 1",
    "other": "IMPORTER = packer.Importer('another', {}, print)",
    "c": "IMPORTER = packer.Importer('c', {}, print)",
    "source": "IMPORTER = packer.Importer('source', {'.cc': None}, print)",
    "taken": "IMPORTER = packer.Importer('taken', {}, print, (), "
    "lambda group: group.add_argument('--entry', dest='source'))",
    "unknown": "IMPORTER = packer.Importer('unknown', {}, print, (), "
    "lambda group: group.add_argument('--colour'))",
}
REASONS = {
    "broken": "importer 'broken' of broken-importer 1.0: RuntimeError: no compiler for it",
    "slow": "importer 'slow' of slow-importer 1.0: its import took 1.2 s, expected less than 1 s",
    "none": "importer 'none' of none-importer 1.0: expected a packer.Importer, found int",
    "other": "its kind is 'another', expected the name of its entry point",
    "c": "importer 'c' of c-importer 1.0: kind 'c' is one of packer's; choose another",
    "source": "suffix '.cc' is one of packer's; remove it",
    "taken": "importer 'taken' of taken-importer 1.0: option --entry is taken",
    "unknown": "importer 'unknown' of unknown-importer 1.0: 'colour' is not a setting",
}


def install(folder: Path, kind: str, module: str, code: str, name: str) -> None:
    """Install a distribution as a file and its metadata in a folder of sys.path."""
    (folder / f"{module}.py").write_text(code)
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    entry = f"[dso_packer.importers]\n{kind} = {module}:IMPORTER\n"
    (metadata / "entry_points.txt").write_text(entry)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which pip installed the sample importer."""
    made = tmp_path_factory.mktemp("sample")
    shutil.copytree(SAMPLE, made / "source")
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    command = [sys.executable, "-m", "pip", *words, "--target", made / "site", made / "source"]
    subprocess.run(command, check=True)
    return made / "site"


@pytest.fixture
def folder(tmp_path: Path, installed: Path) -> Path:
    """A folder with the sample importer and a table."""
    shutil.copytree(installed, tmp_path, dirs_exist_ok=True)
    (tmp_path / "curve.csv").write_text(ROWS)
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the distributions of a folder are installed."""
    start = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    code = f"{start}from packer.cli import main; sys.exit(main())" if len(words) > 1 else words[0]
    command = [sys.executable, "-P", "-c", code if len(words) > 1 else start + code, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def done(folder: Path, *words: str) -> str:
    """Return the output of a run without errors or notes."""
    made = run(folder, *words)
    assert (made.returncode, made.stderr) == (0, "")
    return made.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["curve.csv"], "2.0"),
        (["--table", "curve.csv"], "2.0"),
        (["curve.csv", "--method", "nearest"], "1.0"),
    ],
)
def test_an_importer_has_options_and_a_suffix(
    folder: Path, words: list[str], expected: str
) -> None:
    """Of a distribution that is not ours."""
    done(folder, "export", "c.so", *words)
    assert done(folder, HALF) == f"{expected}\n"


def test_an_importer_has_a_kind_and_a_late_name(folder: Path) -> None:
    """Its settings are the keys of packer.toml, and arguments in Python."""
    (folder / "packer.toml").write_text(f'{PROJECT}method = "nearest"\n')
    done(folder, "export", "c.so")
    assert done(folder, HALF) == "1.0\n"
    (folder / "packer.toml").write_text(f"{PROJECT}methods = 1\n")
    refused = run(folder, "export", "c.so").stderr
    assert "[module.c] methods: unknown key; near names: 'method'" in refused
    made = "import packer; packer.export_library(packer.from_table('curve.csv'), 'c.so')"
    assert done(folder, f"{made}\n{HALF}") == "2.0\n"


def test_help_shows_the_options_of_an_importer(folder: Path) -> None:
    """Below their heading."""
    text = done(folder, "export", "--help")
    assert "tables of x and y:" in text
    assert "--method NAME" in text


def test_an_export_of_c_looks_for_no_importers(folder: Path) -> None:
    """Entry points would be read with this module."""
    (folder / "a.c").write_text("int one(void) { return 1; }")
    words = ["a.so", "a.c", "-O1", "--metadata", "version=1.0", "--soname", "liba.so.1"]
    code = f"import sys; from packer.cli import main\nmain(['export', *{words}])\n"
    assert done(folder, f"{code}print('importlib.metadata' in sys.modules)").endswith("False\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "linear"], "argument --method: needs --table"),
        (["curve.csv", "-O3"], "argument -O3: not allowed with --table"),
        (["curve.csv", "--table", "curve.csv"], "expected one source for importers"),
    ],
)
def test_wrong_words_end_with_2(folder: Path, words: list[str], message: str) -> None:
    """With the option that is missing or too many."""
    made = run(folder, "export", "c.so", *words)
    assert made.returncode == 2
    assert message in made.stderr


def test_a_value_that_is_false_is_not_lost(folder: Path) -> None:
    """An option counts as given if its value is not the default."""
    code = """
import packer
def make(source, depth=5, *, progress):
    return packer.CSourceModule(f"int depth(void) {{ return {depth}; }}", functions="auto")
def add(group):
    group.add_argument("--depth", type=int)
SETTINGS = [packer.Setting("depth", "number", "")]
IMPORTER = packer.Importer("deep", {".deep": None}, make, SETTINGS, add)
"""
    install(folder, "deep", "deep", code, "deep")
    (folder / "a.deep").touch()
    for words, depth in ((["--", "a.deep"], 5), (["a.deep", "--depth", "0"], 0)):
        done(folder, "export", "a.so", *words)
        assert (
            done(folder, "import runtime; print(runtime.load('a.so')['depth']())") == f"{depth}\n"
        )


def test_a_source_is_no_output(folder: Path) -> None:
    """A forgotten output is not written over the source."""
    made = run(folder, "export", "curve.csv")
    assert made.returncode == 2
    assert "expected an output first: packer export model.so curve.csv" in made.stderr


def test_files_find_their_importer_by_their_first_bytes(folder: Path) -> None:
    """The error lists the options of the importers that remain."""
    for kind in ("big", "small"):
        test = f"lambda first: b'{kind}' in first"
        code = f"import packer\nIMPORTER = packer.Importer('{kind}', {{'.q': {test}}}, print)\n"
        install(folder, kind, f"{kind}_q", code, f"{kind}-q")
    for text, found in (("big small", "several importers read"), ("", "no importer recognises")):
        (folder / "a.q").write_text(text)
        made = run(folder, "export", "a.so", "a.q")
        expected = f"a.q: {found} this file; say which by --big or --small"
        assert (made.returncode, expected in made.stderr) == (2, True)


def test_a_missing_distribution_is_named(folder: Path) -> None:
    """With the command that installs it, for options, kinds and names."""
    (folder / "packer.toml").write_text('[module.m]\nkind = "numba"\nmodel = "m.py"\n')
    advice = "needs the package dso-packer-numba: pip install 'dso-packer[numba]'"
    assert f"--numba: {advice}" in run(folder, "export", "a.so", "--numba", "m.py").stderr
    assert f"kind: 'numba' {advice}" in run(folder, "export", "a.so").stderr
    (folder / "m.py").write_text("import numba")
    refused = run(folder, "export", "a.so", "m.py").stderr
    assert "m.py: no importer recognises this file; " in refused
    assert f"--numba {advice}" in refused
    assert f"packer.from_numba {advice}" in run(folder, "import packer; packer.from_numba").stderr


def test_of_two_importers_of_a_kind_one_is_left_out(folder: Path) -> None:
    """The first one by the name of its distribution remains."""
    install(folder, "table", "z_tables", "raise SystemExit('imported')", "z-tables")
    made = run(folder, "export", "c.so", "curve.csv")
    said = "packer: note: importer 'table' of z-tables 1.0: its kind is taken by packer-tables 1.0"
    assert (made.returncode, made.stderr) == (0, f"{said}\n")


@pytest.mark.parametrize("kind", OTHERS)
def test_a_faulty_importer_costs_only_itself(folder: Path, kind: str) -> None:
    """The others and the core work, and a note names the distribution."""
    install(folder, kind, f"{kind}_faulty", f"import packer\n{OTHERS[kind]}\n", f"{kind}-importer")
    made = run(folder, "export", "c.so", "curve.csv")
    assert made.returncode == 0
    assert made.stderr.startswith("packer: note: importer")
    assert REASONS[kind] in made.stderr
    assert done(folder, HALF) == "2.0\n"


def test_doctor_lists_importers(folder: Path) -> None:
    """Working importers, and failing ones."""
    install(folder, "broken", "broken", "raise RuntimeError('no')", "broken-importer")
    shown = json.loads(run(folder, "doctor", "--json").stdout)
    rows = {row["name"]: row for row in shown["findings"]}
    assert rows["importer table"]["detail"] == "from the package packer-tables"
    assert rows["importer broken"]["status"] == "warn"

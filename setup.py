"""Build the native core; everything else is said in pyproject.toml."""

import sysconfig
from glob import glob

from setuptools import Extension, setup

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise SystemExit(
        "dso-packer: found a free-threaded build of CPython, expected one with the GIL, which the "
        "native core relies on"
    )

setup(
    ext_modules=[
        Extension(
            "runtime._core",
            sources=sorted(glob("runtime/native/**/*.c", recursive=True)),
            depends=sorted(
                glob("runtime/native/**/*.h", recursive=True) + glob("runtime/include/*.h")
            ),
            include_dirs=["runtime/native", "runtime/include"],
            # Python brings -g, which would be three quarters of the file.
            extra_compile_args=["-std=c11", "-O2", "-g0", "-fvisibility=hidden", "-pthread"],
            libraries=["dl"],
        )
    ]
)

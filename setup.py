"""Build the native core; everything else is said in pyproject.toml."""

from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "runtime._core",
            sources=sorted(glob("runtime/native/*.c")),
            depends=sorted(glob("runtime/native/*.h") + glob("runtime/include/*.h")),
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-pthread"],
            libraries=["dl"],
        )
    ]
)

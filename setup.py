"""The version, dependencies and extras of dso-packer; pyproject.toml has everything else."""

from setuptools import setup

from build_backend import version

# The packer imports all but the first only where it uses them.
REQUIRED = [
    f"dso-runtime=={version()}",
    "llvmlite>=0.45",
    "packaging>=24.2",
    "pycparser>=3.12,<4",
    "pyelftools>=0.31",
]

EXTRAS = {
    "numpy": ["numpy>=1.26"],
    # ptxas and cuobjdump; without them the tests that need them are skipped. No GPU is needed.
    "cuda": ["nvidia-cuda-nvcc>=13", "nvidia-cuda-cuobjdump>=13"],
    "zig": ["ziglang>=0.17"],  # a C compiler for every target, with its C libraries
    "onnx": [f"dso-packer-onnx=={version()}"],  # packer.from_onnx
    "torch": [f"dso-packer-onnx[torch]=={version()}"],  # packer.from_torch
    "sign": [
        "cryptography>=42",
        "python-pkcs11>=0.8",
    ],  # packer sign, verify, keygen; keys on tokens
    "sbom": ["cyclonedx-python-lib>=11"],  # packer export --sbom
    "numba": [f"dso-packer-numba=={version()}"],  # packer.from_numba
    "trees": [f"dso-packer-trees=={version()}"],  # packer.from_trees
}

setup(version=version(), install_requires=REQUIRED, extras_require=EXTRAS)

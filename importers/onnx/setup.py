"""The version, dependencies and extras of dso-packer-onnx; pyproject.toml has everything else."""

from setuptools import setup

from build_backend import version

# Reading models, and C code of the operators without a kernel in packer.operators.
REQUIRED = [
    f"dso-packer=={version()}",
    "emx-onnx-cgen==1.4.0",
    "numpy>=1.26",
    "onnx>=1.21,<1.22",
    "onnx-shape-inference>=0.4,<0.5",
    "onnxscript>=0.7.2",
]

setup(version=version(), install_requires=REQUIRED, extras_require={"torch": ["torch>=2.6"]})

"""Nodes to C functions: fast kernels, loops over elements, and the rest of ONNX."""

"""ONNX models: a graph becomes a program, C functions and weights in one library.

`read` checks a model, `operator` is one node as a C function.
"""

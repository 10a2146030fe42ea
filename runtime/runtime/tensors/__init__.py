"""Tensors, dtypes and files of weights."""

"""The C files of importers/numba/dso_packer_numba/support beside Numba's own functions."""

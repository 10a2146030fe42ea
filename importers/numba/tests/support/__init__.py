"""The C files of packer/importers/numba/support beside Numba's own functions."""

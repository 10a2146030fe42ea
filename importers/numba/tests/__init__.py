"""Functions of Numba: `make test-numba` runs these, where numba is installed."""

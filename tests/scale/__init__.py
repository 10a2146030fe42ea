"""Dask, Ray and S3 for real: `make test-scale`."""

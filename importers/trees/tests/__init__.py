"""Forests: `make test-trees` runs these, where the training libraries are installed."""

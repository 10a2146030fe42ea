"""Files around a library: wheels, hooks of build backends, type stubs, C headers."""

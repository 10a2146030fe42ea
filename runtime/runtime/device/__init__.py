"""Files of device code and the kernels that they describe."""

"""The same computation with NumPy, in float64: the reference for photo.so."""

import numpy as np


def develop(photo, filters, colours, exponent):
    """Return the grey image and the coloured edges, as run.py does.

    Parameters
    ----------
    photo : numpy.ndarray
        (height, width, 3) uint8.
    filters : numpy.ndarray
        (n, size, size).
    colours : numpy.ndarray
        (n, 3).
    exponent : float
        The exponent of the tone curve.
    """
    height, width, _ = photo.shape
    gray = photo @ np.array([0.2126, 0.7152, 0.0722]) / 255
    size = filters.shape[1]
    padded = np.pad(gray, size // 2, mode="edge")
    responses = np.zeros((len(filters), height, width))
    for dy, dx in np.ndindex(size, size):
        part = padded[dy : dy + height, dx : dx + width]
        responses += filters[:, dy, dx, None, None] * part
    energy = (responses**2).sum(axis=0)
    shares = responses**2 / np.where(energy > 0, energy, 1)
    edges = np.einsum("yx,fyx,fc->yxc", np.sqrt(energy), shares**2, colours)
    return gray, np.clip(edges, 0, 1) ** exponent

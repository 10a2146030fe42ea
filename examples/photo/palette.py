"""photo.palette: a custom module type. It names the filters, and gives each a colour.

Payload: vector<string> names, then for each name the colour as u64 0xRRGGBB.
"""

import numpy as np

import runtime

TYPE_KEY = "photo.palette"


class Palette(runtime.Module):
    """Colours by name, in the order of the filters."""

    type_key = TYPE_KEY
    property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE | runtime.ModuleProperty.RUNNABLE

    def __init__(self, colours):
        self.colours = colours

    def find_function(self, name):
        """Offer ``names()`` and ``colours()``, a float32 array of shape (filters, 3)."""
        return {"names": self._names, "colours": self._array}.get(name)

    def _names(self):
        return list(self.colours)

    def _array(self):
        rgb = [[colour >> shift & 0xFF for shift in (16, 8, 0)] for colour in self.colours.values()]
        return np.array(rgb, np.float32) / 255

    def save_to_binary(self, writer):
        """Write names, then colours."""
        writer.write_vector(self.colours, writer.write_string)
        for colour in self.colours.values():
            writer.write_u64(colour)


@runtime.register_loader(TYPE_KEY)
def load(reader):
    """Read the payload that `Palette.save_to_binary` wrote."""
    names = reader.read_vector(reader.read_string, 8)
    return Palette({name: reader.read_u64() for name in names})


def directions():
    """Make the palette of this library: one colour for each direction of an edge."""
    return Palette(
        {"upright": 0xFF3030, "rising": 0xFFC000, "level": 0x00D0A0, "falling": 0x5070FF}
    )

"""A custom module type, in a dozen lines, in one library with host code.

python own_type.py             exports a library, then runs this file again in a fresh process
python own_type.py LIBRARY     loads the library and uses it
"""

import subprocess
import sys
import tempfile
from array import array

import runtime

ARGMAX = """
long argmax(const float *scores, long n) {
  long best = 0;
  for (long i = 1; i < n; ++i)
    if (scores[i] > scores[best]) best = i;
  return best;
}
"""


class Labels(runtime.Module):
    """The names of a classifier's outputs."""

    type_key = "example.labels"
    property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE | runtime.ModuleProperty.RUNNABLE

    def __init__(self, names):
        self.names = names

    def find_function(self, name):  # for module["label"]
        return self.names.__getitem__ if name == "label" else None

    def save_to_binary(self, writer):  # for an export
        writer.write_vector(self.names, writer.write_string)


@runtime.register_loader("example.labels")
def load_labels(reader):
    """Read the payload that `Labels.save_to_binary` wrote."""
    return Labels(reader.read_vector(reader.read_string))


def export(path):
    """Make one library of host code that imports the labels."""
    import packer

    argmax = packer.CSourceModule(ARGMAX, functions="auto")
    argmax.import_module(Labels(["cat", "dog", "rooster"]))
    return packer.export_library(argmax, path)


def classify(path):
    """Load the library, and call a function of the host code and one of the labels."""
    model = runtime.load(path)
    scores = array("f", [0.1, 0.7, 0.2])
    best = model["argmax"](scores, len(scores))
    print("imports: ", model.imported_modules)
    print(f"argmax{tuple(round(score, 1) for score in scores)} = {best}: {model['label'](best)!r}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        classify(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            library = export(f"{folder}/classifier.so")
            print("exported:", library.name, library.stat().st_size, "bytes", flush=True)
            subprocess.run([sys.executable, __file__, library], check=True)

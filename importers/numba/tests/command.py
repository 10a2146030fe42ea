"""The command line in processes."""

import sys

COMMAND = (sys.executable, "-m", "packer")

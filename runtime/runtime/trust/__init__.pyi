"""The public names of trust, one line each; a line's form is that of `runtime.public_names`."""

from .identity import Identity as Identity
from .verify import verify_data as verify_data
from .verify import verify_file as verify_file

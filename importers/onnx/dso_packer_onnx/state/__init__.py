"""State: inputs that are the outputs of the call before, which a session keeps."""

from __future__ import annotations

from .cache import State as State
from .cache import append_in_place as append_in_place
from .cache import name_totals as name_totals
from .pairs import find_pairs as find_pairs

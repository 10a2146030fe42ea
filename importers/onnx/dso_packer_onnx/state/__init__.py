"""State: inputs that are the outputs of the call before, which a session keeps."""

from __future__ import annotations

from .cache import State as State
from .cache import append_in_place as append_in_place
from .cache import name_totals as name_totals
from .code import guards_of as guards_of
from .pairs import find_pairs as find_pairs
from .parts import MAIN as MAIN
from .parts import Part as Part
from .parts import given_to as given_to
from .parts import read_parts as read_parts

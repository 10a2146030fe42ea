"""Constants and variables of sources and headers: found, computed, and confirmed."""

"""Trust in a library: signatures, bills of materials, encryption."""

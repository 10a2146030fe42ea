"""ELF files: structures, objects, archives and loaded images, read without running anything."""

"""ELF files: records, objects, archives and loaded images, read without running anything."""

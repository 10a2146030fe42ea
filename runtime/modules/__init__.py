"""The module types that come in blobs, one file per family of type keys."""

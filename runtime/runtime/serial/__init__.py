"""Module trees as bytes: blobs of both dialects, manifests, and what pickle takes."""

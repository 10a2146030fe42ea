"""Pickles by reference: the path and the digest of a library's file instead of its bytes.

Who unpickles one loads the file at the path, if it has the digest; otherwise a copy from the store,
which `fetch` fills.
"""

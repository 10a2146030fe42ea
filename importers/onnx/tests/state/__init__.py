"""Inputs and outputs that a session keeps."""

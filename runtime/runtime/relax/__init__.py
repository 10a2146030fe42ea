"""Relax's virtual machine: executables, their text and the machine that runs them."""

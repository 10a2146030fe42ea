"""The state of a model, from call to call."""

"""What a model keeps from call to call."""

"""Models that PyTorch exports."""

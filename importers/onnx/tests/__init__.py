"""Models of ONNX: `make test-models` runs these, where onnx is installed."""

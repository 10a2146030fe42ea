"""TVM's graph executor: graph JSON, parameters, binding and profile."""

"""TVM's graph executor: graph JSON, parameters and binding."""

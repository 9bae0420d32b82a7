"""Analyses of the `onnx` level: shapes, dims, and the role of neighbours in a graph for ONNX Runtime."""

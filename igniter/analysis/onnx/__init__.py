"""Analyses of the `onnx` level: shapes, dims, and what neighbours in a graph are to ONNX Runtime."""

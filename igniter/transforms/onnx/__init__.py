"""Passes over the `onnx` level."""

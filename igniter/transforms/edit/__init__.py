"""Passes that change a model as its user asks: `onnx` to `onnx`."""

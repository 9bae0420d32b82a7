"""Passes that change a model because its user asks for it: `onnx` to `onnx`, one a file (`docs/toolbox.md`)."""

"""Passes for changes of a model at the user's request: `onnx` to `onnx`, one per file (`docs/toolbox.md`)."""

"""The verbs of onnx-tool beside Igniter's, on the same models: `python -m benchmark.onnx_tool --help`."""

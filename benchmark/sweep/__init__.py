"""Small graphs beside ONNX Runtime: `python -m benchmark.sweep`."""

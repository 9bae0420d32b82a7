"""ONNX's backend node cases through the whole compiler: `python -m tests.conformance`."""

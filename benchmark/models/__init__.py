"""The models that the benchmarks run: architectures by name, and how each one is made into an ONNX file."""

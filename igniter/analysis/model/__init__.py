"""What the toolbox knows of a model: pure functions over its ONNX graph, which return frozen data."""

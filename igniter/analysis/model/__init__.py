"""What a model is, told to people: pure functions over a module at the `onnx` level, after `infer-shapes`."""

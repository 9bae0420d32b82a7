"""The course of a compile: the driver, its options, the folder that it writes and its load in ONNX Runtime."""

"""Random valid graphs, compiled by Igniter and run beside ONNX Runtime: `python -m tests.fuzz --seed 0 --count 100`."""

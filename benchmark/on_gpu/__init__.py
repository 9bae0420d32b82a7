"""Compiled models on a GPU without ONNX Runtime's CUDA provider: built on any machine, run where torch has a GPU.

    python -m benchmark.on_gpu build FOLDER     compile the cases to a folder: libraries, inputs and what is expected
    python -m benchmark.on_gpu run FOLDER       check every case on the GPU, and time them beside torch

What runs is the library as it is, by the driver: `benchmark.on_gpu.host` is ONNX Runtime's C API as far as a library
calls it, with torch's tensors, allocator and stream. The machine with the GPU needs torch and numpy, not Igniter's
dependencies.
"""

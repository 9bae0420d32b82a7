"""The backend for NVIDIA GPUs: kernels of the `tt` dialect become Triton kernels, and these become PTX."""

"""The backend for NVIDIA GPUs: kernels of the `tt` dialect become Triton's, and these PTX."""

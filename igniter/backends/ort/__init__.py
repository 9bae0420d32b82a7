"""The ORT backend: the custom-op library around the kernels, as LLVM IR text."""

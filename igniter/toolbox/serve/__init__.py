"""`igniter serve`: a model behind the open inference protocol, in a process or on a Ray cluster, and model
repositories for Triton Inference Server."""

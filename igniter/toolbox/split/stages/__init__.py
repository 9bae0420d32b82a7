"""Models in several parts: the format of a folder of stages, and running it here, in processes, or on a cluster."""

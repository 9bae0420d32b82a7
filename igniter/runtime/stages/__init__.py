"""Models in several parts: what a folder of stages holds, and running it here, in processes, or on a cluster."""

"""Models in several parts: what a folder of stages holds, and running it in one process, in several, or on a cluster."""

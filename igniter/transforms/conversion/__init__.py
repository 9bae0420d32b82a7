"""The lowerings between levels."""

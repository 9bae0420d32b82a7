"""Parameters that only a run knows, and sizes that depend on data (docs/explanation/values.md)."""

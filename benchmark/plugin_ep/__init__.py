"""A plugin execution provider that runs a compiled folder, beside its custom op: docs/explanation/plugin-ep.md."""

"""Text from language models: `igniter.Generator` and `igniter generate` (docs/deploy/language-models.md)."""

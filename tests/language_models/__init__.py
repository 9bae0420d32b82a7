"""Language models as onnxruntime-genai writes them, of a few thousand weights."""

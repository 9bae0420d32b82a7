"""Run by NNSmith's own Python: `make_models.py FOLDER FIRST COUNT NODES` writes a model and inputs for each seed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

SECONDS = 60
"""What a seed may take: of a few, NNSmith makes tensors of gigabytes."""


def main() -> None:
    from nnsmith.abstract.extension import activate_ext
    from nnsmith.materialize import Model
    from nnsmith.narrow_spec import auto_opset

    folder, first, count, nodes = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    kind = Model.init("onnx", backend_target="cpu")
    kind.add_seed_setter()
    opset = auto_opset(kind)
    activate_ext(opset=opset, factory=None)
    for seed in range(first, first + count):
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            os._exit(make(kind, opset, folder, seed, nodes))
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print(f"seed {seed}: ended by signal {os.WTERMSIG(status)}", file=sys.stderr)


def make(kind: object, opset: object, folder: Path, seed: int, nodes: int) -> int:
    """Writes one model and its inputs; 1 where the seed makes none."""
    import numpy as np
    import onnx
    from nnsmith.graph_gen import model_gen

    try:
        graph = model_gen(opset=opset, method="symbolic-cinit", seed=seed, max_nodes=nodes, timeout_ms=8000)
        model = kind.from_gir(graph.make_concrete())
        model.refine_weights()
        oracle = model.make_oracle()
        np.savez(folder / f"{seed}.npz", **oracle.input)
        onnx.save(model.native_model, str(folder / f"{seed}.onnx"))
    except Exception as error:  # not every seed makes a model
        print(f"seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    main()

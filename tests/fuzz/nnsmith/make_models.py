"""Run by NNSmith's own Python: `make_models.py FOLDER FIRST COUNT NODES` writes a model and inputs for each seed."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    import numpy as np
    import onnx
    from nnsmith.abstract.extension import activate_ext
    from nnsmith.graph_gen import model_gen
    from nnsmith.materialize import Model
    from nnsmith.narrow_spec import auto_opset

    folder, first, count, nodes = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    kind = Model.init("onnx", backend_target="cpu")
    kind.add_seed_setter()
    opset = auto_opset(kind)
    activate_ext(opset=opset, factory=None)
    for seed in range(first, first + count):
        try:
            graph = model_gen(opset=opset, method="symbolic-cinit", seed=seed, max_nodes=nodes, timeout_ms=8000)
            model = kind.from_gir(graph.make_concrete())
            model.refine_weights()
            oracle = model.make_oracle()
            onnx.save(model.native_model, str(folder / f"{seed}.onnx"))
            np.savez(folder / f"{seed}.npz", **oracle.input)
        except Exception as error:  # not every seed makes a model
            print(f"seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()

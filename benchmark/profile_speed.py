"""How fast `igniter profile` is: nodes a second by stage, and a model of 5 GB in time and memory.

    python -m benchmark.profile_speed [MODEL...]     without models, the light ones of the onnx package and the cache
    python -m benchmark.profile_speed --large        a model of 5 GB, whose weights are a file with no data in it

Each stage is the best of some rounds, in one process: reading the file, the copy that is typed, inferring shapes,
counting. Times are of the CPU, so that what else runs on the machine disturbs less. A node is one of the file, those
that become constants included. `--large` runs the command in a process of its own and says what the process had at
most.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5
STAGES = ("import", "copy", "infer", "count")
CACHE = Path(__file__).parent / ".cache"
HIDDEN, LAYERS = 4096, 20
"""The large model: as many layers of 4 x 4096 x 4096 weights as make 5 GB."""


def default_models() -> list[Path]:
    """The light models of the onnx package, and what the benchmarks have exported."""
    import onnx

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return [*sorted(light.glob("light_*.onnx")), *sorted(CACHE.glob("*/model.onnx"))]


def measure(path: Path, rounds: int = ROUNDS) -> dict[str, float]:
    """Nodes of a model, and seconds of each stage."""
    import igniter
    from igniter.compiler.driver import count_nodes
    from igniter.toolbox.profile.counting import count_model

    best = dict.fromkeys(STAGES, float("inf"))
    nodes = 0
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        start = time.process_time()
        module = igniter.load(path)
        read = time.process_time()
        nodes = count_nodes(module.ir)
        copying = time.process_time()
        module = module.clone()
        inferring = time.process_time()
        module.run_passes("inline-functions,infer-shapes", verify_each=False)
        counting = time.process_time()
        count_model(module.ir)
        done = time.process_time()
        took = (read - start, inferring - copying, counting - inferring, done - counting)
        best = {name: min(best[name], seconds) for name, seconds in zip(STAGES, took, strict=True)}
    return {"nodes": nodes, **best}


def make_large(folder: Path) -> Path:
    """A model of 5 GB: products with weights in an external file that takes no room on disk."""
    import onnx
    from onnx import TensorProto, helper

    size = HIDDEN * HIDDEN * 4
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value = "x"
    for k in range(4 * LAYERS):
        weight = TensorProto(name=f"w{k}", data_type=TensorProto.FLOAT, dims=[HIDDEN, HIDDEN])
        weight.data_location = TensorProto.EXTERNAL
        for key, text in (("location", "weights.bin"), ("offset", str(k * size)), ("length", str(size))):
            weight.external_data.add(key=key, value=text)
        weights.append(weight)
        nodes += [
            helper.make_node("MatMul", [value, f"w{k}"], [f"m{k}"], f"/layers.{k // 4}/proj.{k % 4}/MatMul"),
            helper.make_node("Relu", [f"m{k}"], [f"r{k}"], f"/layers.{k // 4}/act.{k % 4}/Relu"),
        ]
        value = f"r{k}"
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "seq", HIDDEN]) for name in ("x", value)]
    model = helper.make_model(
        helper.make_graph(nodes, "large", ports[:1], ports[1:], weights), opset_imports=[helper.make_opsetid("", 17)]
    )
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with open(folder / "weights.bin", "wb") as file:
        file.truncate(4 * LAYERS * size)
    return folder / "model.onnx"


def large() -> dict[str, float]:
    """Seconds and the most memory of `igniter profile` on the large model, the start of the process included."""
    with tempfile.TemporaryDirectory(prefix="igniter-profile-speed-") as folder:
        path = make_large(Path(folder))
        stored = sum(p.stat().st_size for p in path.parent.iterdir())
        command = [sys.executable, "-m", "igniter.tools.main", "profile", str(path), "--by", "type", "--json"]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        total = json.loads(done.stdout)["total"]
    return {"bytes": stored, "seconds": seconds, "memory": peak, "parameters": total["parameters"]}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--large", action="store_true", help="a model of 5 GB instead")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    if asked.large:
        found = large()
        print(
            f"{found['bytes'] / 1e9:.2f} GB, {found['parameters'] / 1e9:.3f} G parameters: {found['seconds']:.2f} s, "
            f"{found['memory'] / 2**20:.0f} MiB at most"
        )
        return
    heads = "".join(f"{name:>9}" for name in (*STAGES, "all"))
    print(f"{'model':<28}{'nodes':>7}{heads}   nodes a second (ms before)")
    for path in asked.models or default_models():
        found = measure(path, asked.rounds)
        name = path.parent.name if path.stem == "model" else path.stem
        stages = [found[s] for s in STAGES]
        times = "".join(f"{1e3 * s:>9.1f}" for s in (*stages, sum(stages)))
        rates = ", ".join(f"{n} {found['nodes'] / s:,.0f}" for n, s in zip(STAGES, stages, strict=True))
        print(f"{name:<28}{found['nodes']:>7.0f}{times}   {rates}; all {found['nodes'] / sum(stages):,.0f}")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()

"""From a seed to a model, feeds at promised and unpromised sizes, and what Igniter makes of them beside ORT."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from igniter.frontend.exact_integers import exact_bytes
from igniter.frontend.ort_values import run
from tests.fuzz.generator import EVERYTHING, SMALL_REGIONS
from tests.fuzz.wild import catalogue, nodes, nodes_ml, nodes_products, nodes_quantised, nodes_sequence, nodes_shapes
from tests.fuzz.wild.pool import BF16, Array, Pool, is_float, make_model, make_session, reads, value_info
from tests.fuzz.wild.quick import unoptimised
from tests.fuzz.wild.readings import reading
from tests.isolated import Lost, run_isolated

OPSETS = (7, 9, 11, 12, 13, 15, 17, 18, 19, 20, 21, 22, 23, 24)
UNPROMISED = (0, 1, 2, 5, 33)
DTYPES: tuple[Any, ...] = (
    *[np.float32] * 10,
    *[np.float64] * 2,
    *[np.float16] * 3,
    *(BF16, np.int64, np.int64, np.int32, np.bool_),
    *(np.uint8, np.uint8, np.int8, np.int8, np.int16, np.uint16, np.uint32, np.uint64),
)
RULE_MODULES = (nodes, nodes_products, nodes_quantised, nodes_sequence, nodes_shapes, nodes_ml)
"""Which register their rules when they are imported."""
TOLERANCE = {"float32": 1e-3, "float64": 1e-6, "float16": 1e-2, "bfloat16": 4e-2}
FUSIONS = {"default": "cpu-fusion", "every": EVERYTHING, "small": SMALL_REGIONS}
TARGETS = ("native", "native", "x86-64-v3", "x86-64-v2")

Feed = dict[str, Array]


@dataclass(frozen=True)
class Wild:
    """A model and the inputs to run it on; those after the first have sizes that the model does not promise."""

    seed: int
    model: onnx.ModelProto
    reference: onnx.ModelProto
    """The same model with the axes of reductions counted from the front: on empty operands ONNX Runtime takes negative
    ones for no axes at all, and gives results of dims that the node cannot have."""
    feeds: tuple[Feed, ...]
    fusion: str
    target: str
    sanitize: bool = False
    """True if every access of a kernel checks its address."""
    shipped: bool = True
    """True if LLVM optimises the code, as it does in what users get; see `tests.fuzz.wild.quick`."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one model."""

    seed: int
    status: str
    """ok | mismatch | accepts (Igniter runs what ORT refuses) | refuses (ORT runs what Igniter refuses) | unloadable
    (ORT does not load the compiled model) | error (Igniter raised) | crash | timeout | invalid (ORT does not run it)
    | ort (ORT crashes by itself, or differs, and ONNX's own evaluator agrees with Igniter)"""
    message: str = ""
    runs: int = 0
    refusals: int = 0
    """Feeds that both refuse."""
    left: int = 0

    @property
    def failed(self) -> bool:
        return self.status not in ("ok", "invalid", "ort")


def make_wild(seed: int) -> Wild | None:
    """The model of a seed, always the same; None where nothing came about."""
    rng = random.Random(seed)
    p = Pool(rng, rng.choice(OPSETS), special=rng.random() < 0.1)
    if seed % 8 != 5 or not catalogue.start(p):
        for _ in range(rng.randint(1, 3)):
            shape = [rng.choice((1, 2, 3, 4, 5, 6, 8, 16, 17)) for _ in range(rng.choice((0, 1, 2, 2, 3, 3, 4, 4)))]
            p.input(rng.choice(DTYPES), shape)
    rules, weights = zip(*nodes.RULES, strict=True)
    wanted = rng.choice((1, 2, 2, 3, 3, 4, 5, 8, 16))
    for _ in range(12 * wanted):
        if len(p.nodes) >= wanted:
            break
        rng.choices(rules, weights)[0](p)
    if not p.nodes:
        return None
    model = _model(p)
    symbols = sorted({d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param})
    feeds = [{i.name: p.values[i.name] for i in model.graph.input}]
    for _ in range(4 if symbols else 0):
        sizes = {s: rng.choice(UNPROMISED) if rng.random() < 0.6 else None for s in symbols}
        feeds.append({i.name: _resized(p, i, sizes) for i in model.graph.input})
    return Wild(
        seed,
        model,
        _from_front(model, p),
        tuple(feeds),
        rng.choice(list(FUSIONS)),
        rng.choice(TARGETS),
        sanitize=is_sanitized(seed),
        shipped=seed % 4 == 0,
    )


def is_sanitized(seed: int) -> bool:
    """A tenth of the models."""
    return seed % 10 == 9


def _from_front(model: onnx.ModelProto, p: Pool) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    weights = {w.name: w for w in changed.graph.initializer}
    for node in changed.graph.node:
        if node.domain or not node.op_type.startswith(("Reduce", "Arg")):
            continue
        rank = p.values[node.input[0]].ndim
        for attr in node.attribute:
            if attr.name == "axis" and attr.i < 0:
                attr.i += rank
            elif attr.name == "axes":
                attr.ints[:] = [a % rank for a in attr.ints]
        if len(node.input) > 1 and node.input[1] in weights:
            axes = numpy_helper.to_array(weights[node.input[1]]) % max(rank, 1)
            node.input[1] = f"{node.name}_axes"  # the weight may have other users
            changed.graph.initializer.append(numpy_helper.from_array(axes, node.input[1]))
    return changed


def _model(p: Pool) -> onnx.ModelProto:
    rng = p.rng
    read = {n for node in p.nodes for n in reads(node)}
    made = [n for node in p.nodes for n in node.output if n]
    outputs = [n for n in made if n not in read] or made[-1:]
    outputs += [n for n in rng.sample(made, min(len(made), rng.randrange(3))) if n not in outputs]
    nodes_, aliases = list(p.nodes), []
    if rng.random() < 0.1:
        # Two outputs of one value.
        nodes_.append(helper.make_node("Identity", [outputs[0]], ["alias"], name="alias"))
        aliases.append("alias")
    used = [n for n in p.inputs if n in read]
    names: dict[int, str] = {}
    graph = helper.make_graph(
        nodes_,
        "wild",
        [value_info(n, p.values[n].dtype, [_dim(rng, d, names) for d in p.shape(n)]) for n in used],
        [value_info(n, p.values[n if n in p.values else outputs[0]].dtype, None) for n in [*outputs, *aliases]],
        [numpy_helper.from_array(a, n) for n, a in p.weights.items() if n in read],
    )
    return make_model(graph, p.opset)


def _dim(rng: random.Random, size: int, names: dict[int, str]) -> int | str:
    kind = rng.random()
    if kind < 0.35:
        return size
    if kind < 0.75:
        return names.setdefault(size, f"n{size}")
    return f"u{rng.randrange(10**6)}_{size}"


def _resized(p: Pool, info: onnx.ValueInfoProto, sizes: dict[str, int | None]) -> Array:
    """An input of other sizes: its own elements, repeated or cut."""
    array = p.values[info.name]
    shape = []
    for d, now in zip(info.type.tensor_type.shape.dim, array.shape, strict=True):
        wanted = sizes.get(d.dim_param) if d.dim_param else None
        shape.append(now if wanted is None else wanted)
    if not array.size:
        return p.array(array.dtype, shape)
    return np.resize(array, shape)


def run_wild(case: Wild) -> Outcome:
    """Compiles and compares one model in this process."""
    import igniter
    from igniter.errors import IgniterError

    try:
        reference = make_session(case.reference)
        if any(not isinstance(a, np.ndarray) for a in run(reference, case.feeds[0])):
            return Outcome(case.seed, "invalid", "it has an output that is no tensor")
    except Exception as error:  # the whole graph has an interface that its nodes alone did not show
        return Outcome(case.seed, "invalid", _first_line(error))
    chosen = igniter.CompileOptions(fusion_passes=FUSIONS[case.fusion], target=case.target)
    options = dataclasses.replace(chosen, sanitize=case.sanitize or chosen.sanitize)
    try:
        with nullcontext() if case.shipped else unoptimised():
            artifact = igniter.compile(case.model, options=options, verify=False, cache=False)
    except Exception as error:
        # ONNX Runtime is lenient about what an opset has which types for.
        status = "invalid" if "is not a valid model" in str(error) else "error"
        return Outcome(case.seed, status, f"{type(error).__name__}: {_first_line(error)}")
    try:
        session = artifact.session(intra_op_num_threads=1 + case.seed % 2, log_severity_level=4)
    except IgniterError as error:
        return Outcome(case.seed, "unloadable", _first_line(error))
    left = artifact.report["nodes_after"] - artifact.report["regions"]
    runs = refusals = 0
    for feed in case.feeds:
        want, got = _attempt(reference, feed), _attempt(session, feed)
        if isinstance(want, Exception) and isinstance(got, Exception):
            refusals += 1
            continue
        sizes = {n: a.shape for n, a in feed.items()}
        if isinstance(want, Exception) and unneeded(case.model, str(want)):
            refusals += 1
            continue
        if isinstance(want, Exception):
            status = "accepts" if isinstance(_attempt(optimised(case.reference), feed), Exception) else "ort"
            return Outcome(case.seed, status, f"{sizes}: ORT: {_first_line(want)}", runs, refusals, left)
        if isinstance(got, Exception):
            status = "ort" if is_lenient(case, feed, str(got)) else "refuses"
            return Outcome(case.seed, status, f"{sizes}: {_first_line(got)}", runs, refusals, left)
        runs += 1
        if any(not isinstance(e, np.ndarray) for e in want):
            return Outcome(case.seed, "ort", f"{sizes}: it leaves an output out", runs, refusals, left)
        status, message = compare(case, feed, want, got)
        if status != "ok":
            return Outcome(case.seed, status, f"{sizes}: {message}", runs, refusals, left)
    return Outcome(case.seed, "ok", "", runs, refusals, left)


def unneeded(model: onnx.ModelProto, error: str) -> bool:
    """True if the node that ONNX Runtime blames computes nothing that an output needs, but for its shape or type.

    Igniter leaves such a node out, and what it would refuse.
    """
    graph = model.graph
    blamed = next((n for n in graph.node if f"Name:'{n.name}'" in error), None)
    if blamed is None:
        return False
    needed = {o.name for o in graph.output}
    for node in reversed(graph.node):
        if node.op_type not in ("Shape", "Size") and needed & set(node.output):
            needed |= {node.input[0]} if node.op_type == "CastLike" else reads(node)
    return not needed & set(blamed.output)


LENIENT = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")


def is_lenient(case: Wild, feed: Feed, error: str) -> bool:
    """True if Igniter refuses what is no valid run, and ONNX Runtime makes something of it nevertheless.

    It computes a loss for as many rows of scores as there are labels, joins a [2, 3] and a [4, 0] to a [6, 3], of which
    it never writes the last rows, a state without elements to whatever it is the state of, and keeps a dim of the
    input where a computed dim of a Reshape comes out as 0.
    """
    if any(n.op_type in LENIENT for n in case.model.graph.node) and "expected" in error:
        return True
    weights = {w.name for w in case.model.graph.initializer}
    shapers = [n for n in case.model.graph.node if n.op_type == "Reshape" and n.input[1] not in weights]
    joins = [n for n in case.model.graph.node if n.op_type in ("Concat", "CausalConvWithState")]
    if not shapers and not joins:
        return False
    found = _intermediates(case.reference, feed, [i for n in (*shapers, *joins) for i in n.input if i])
    return any(_keeps_a_dim(*(found[i] for i in n.input)) for n in shapers if f"node '{n.name}'" in error) or any(
        _joins_what_does_not_fit(n, [found[i].shape for i in n.input if i]) for n in joins
    )


def _intermediates(model: onnx.ModelProto, feed: Feed, names: Sequence[str]) -> Feed:
    """The results of ONNX Runtime for values of a graph, inputs and weights among them."""
    known = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer} | feed
    wanted = [n for n in dict.fromkeys(names) if n not in known]
    probed = onnx.ModelProto()
    probed.CopyFrom(model)
    del probed.graph.output[:]
    probed.graph.output.extend(onnx.ValueInfoProto(name=n) for n in wanted)
    return known | (dict(zip(wanted, run(make_session(probed), feed), strict=True)) if wanted else {})


def _keeps_a_dim(data: Array, target: Array) -> bool:
    return any(t == 0 and (k >= data.ndim or data.shape[k] != 0) for k, t in enumerate(target.tolist()))


def _joins_what_does_not_fit(node: onnx.NodeProto, shapes: list[tuple[int, ...]]) -> bool:
    if node.op_type == "CausalConvWithState":
        x, state = shapes[0], shapes[-1]
        return len(state) == 3 and 0 in state and x[:2] != state[:2]
    axis = next(a.i for a in node.attribute if a.name == "axis") % len(shapes[0])
    return any(0 in s for s in shapes) and len({s[:axis] + s[axis + 1 :] for s in shapes}) > 1


def optimised(model: onnx.ModelProto) -> Any:
    """A session of ONNX Runtime with its own rewriting of the graph, and with exact integers."""
    return onnxruntime.InferenceSession(exact_bytes(model), providers=["CPUExecutionProvider"])


def _attempt(session: Any, feed: Feed) -> list[Array] | Exception:
    try:
        return run(session, feed)
    except Exception as error:  # a refusal, which is compared
        return error


def compare(case: Wild, feed: Feed, want: Sequence[Array], got: Sequence[Array]) -> tuple[str, str]:
    """`ok`, or how the outputs differ beyond what the model's own rounding explains."""
    from tests.fuzz.run import second_opinion

    moved: list[list[Array]] | None = None
    for k, (e, a) in enumerate(zip(want, got, strict=True)):
        name = case.model.graph.output[k].name
        alike = e.shape == a.shape and e.dtype == a.dtype
        if alike and _agrees(e, a):
            continue
        if not e.size and not a.size and e.ndim == a.ndim and _loops(case.model):
            continue  # what a loop of no steps collects has dims of 0, or of what its graph is known to make
        if e.dtype == a.dtype:
            moved = _nudged(case.reference, feed) if moved is None else moved
            own = [m[k] for m in moved]
            if not alike and any(m.shape != e.shape for m in own):
                continue  # how many elements are chosen is a matter of rounding
            if alike and any(m.shape != e.shape or not _agrees(e, m, 1.0 / 16) for m in own) and _explained(e, a, own):
                continue
        # Rewritten, or as it is: a reduction that is left to ONNX Runtime has its own results of nothing.
        for session in (optimised(case.reference), *([make_session(case.model)] if _reduces(case.model) else [])):
            again = _attempt(session, feed)
            if not isinstance(again, Exception) and again[k].shape == a.shape and _agrees(again[k], a):
                return "ort", name
        meant = reading(case.reference, feed)
        if meant is not None and meant[k].shape == a.shape and _agrees(meant[k], a):
            return "ort", name
        opinion = second_opinion(case.reference, feed, k)
        if opinion is not None and np.shape(opinion) == a.shape and _agrees(np.asarray(opinion, a.dtype), a):
            return "ort", name
        differs = _distance(e, a) if alike else f"{a.dtype}{list(a.shape)}, ORT {e.dtype}{list(e.shape)}"
        return "mismatch", f"{name}: {differs}"
    return "ok", ""


def _reduces(model: onnx.ModelProto) -> bool:
    return any(n.op_type.startswith(("Reduce", "Arg")) for n in model.graph.node)


def _loops(model: onnx.ModelProto) -> bool:
    return any(n.op_type in ("Loop", "Scan") for n in model.graph.node)


def _agrees(e: Array, a: Array, share: float = 1.0) -> bool:
    if not is_float(e.dtype):
        return bool(np.array_equal(e, a))
    wide, narrow = e.astype(np.float64), a.astype(np.float64)
    finite = np.isfinite(wide) & np.isfinite(narrow)
    same = (wide == narrow) | (np.isnan(wide) & np.isnan(narrow))
    if not (finite | same).all():
        return False
    top = float(np.abs(wide[finite]).max(initial=0.0))
    gap = float(np.abs(wide[finite] - narrow[finite]).max(initial=0.0))
    return gap <= share * TOLERANCE.get(e.dtype.name, 1e-3) * max(top, 1e-15)


def _nudged(model: onnx.ModelProto, feed: Feed) -> list[list[Array]]:
    """The results of ONNX Runtime for inputs and weights that differ in their last bits."""
    rng = np.random.default_rng(0)
    found: list[list[Array]] = []
    # A scale of 1 says that an axis keeps its size, and may have to.
    scales = {name for n in model.graph.node if n.op_type in ("Resize", "Upsample") for name in n.input[1:]}
    for _ in range(16):
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        for weight in (w for w in changed.graph.initializer if w.name not in scales):
            weight.CopyFrom(numpy_helper.from_array(_nudge(rng, numpy_helper.to_array(weight)), weight.name))
        made = _attempt(make_session(changed), {n: _nudge(rng, a) for n, a in feed.items()})
        if not isinstance(made, Exception):
            found.append(made)
    return found


def _nudge(rng: np.random.Generator, array: Array) -> Array:
    if not is_float(array.dtype):
        return array
    with np.errstate(all="ignore"):
        moved = np.asarray(array.astype(np.float64) * (1 + epsilon(array.dtype) * rng.choice([-2, 2], array.shape)))
        return moved.astype(array.dtype)


def epsilon(dtype: Any) -> float:
    """The distance of 1 to the next float of a type."""
    return float(ml_dtypes.finfo(dtype).eps)


def _explained(e: Array, a: Array, moved: Sequence[Array]) -> bool:
    """True if every element that differs is one that moves by itself, as far (16 times for floats)."""
    if any(m.shape != e.shape for m in moved):
        return True
    if not is_float(e.dtype):
        unsure = np.any([m != e for m in moved], axis=0)
        # Which element a rounding tips over is chance: as many as by themselves may do so, and some more.
        return bool((e != a).sum() <= 4 * max(1, int(unsure.sum())))
    with np.errstate(invalid="ignore"):
        if not np.array_equal(np.isfinite(e), np.isfinite(a)):
            return any(not np.array_equal(np.isfinite(m), np.isfinite(e)) for m in moved)
        gap = np.nanmax(np.abs(e.astype(np.float64) - a), initial=0.0, where=np.isfinite(e))
        own = max(float(np.nanmax(np.abs(e.astype(np.float64) - m), initial=0.0, where=np.isfinite(e))) for m in moved)
    return bool(gap <= 16 * own)


def _distance(e: Array, a: Array) -> str:
    if not is_float(e.dtype):
        return f"{int((e != a).sum())} of {e.size} differ"
    wide, narrow = e.astype(np.float64), a.astype(np.float64)
    finite = np.isfinite(wide) & np.isfinite(narrow)
    strange = int((~finite & ~(np.isnan(wide) & np.isnan(narrow)) & (wide != narrow)).sum())
    gap = np.abs(wide[finite] - narrow[finite]).max(initial=0.0)
    return f"{gap:.3g} of {np.abs(wide[finite]).max(initial=0.0):.3g}, {strange} not finite on one side only"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[-1][-300:]


def run_seed(seed: int) -> Outcome:
    """Makes and runs the model of a seed in this process."""
    case = make_wild(seed)
    return Outcome(seed, "invalid", "no node came about") if case is None else run_wild(case)


def run_seeds(seeds: Sequence[int], timeout: float = 120.0) -> Iterator[Outcome]:
    """The outcome of every seed, each safe from crashes of the others."""
    for seed, found in run_isolated("tests.fuzz.wild.run:run_seed", seeds, timeout):
        if not isinstance(found, Lost):
            yield found
            continue
        # A machine with too much to do loses both, which says nothing about ONNX Runtime: only the same end does.
        alone = [made for _, made in run_isolated("tests.fuzz.wild.run:run_reference", [seed], timeout)]
        by_itself = found.status == "crash" and any(isinstance(made, Lost) and made.status == "crash" for made in alone)
        yield Outcome(seed, "ort" if by_itself else found.status, found.message)


def run_reference(seed: int) -> None:
    """What ONNX Runtime alone makes of a seed's model, as it is and rewritten; for finding out who crashed."""
    case = make_wild(seed)
    if case is not None:
        for session in (make_session(case.reference), optimised(case.reference)):
            for feed in case.feeds:
                _attempt(session, feed)


def save_seed(item: tuple[int, str]) -> None:
    """Writes the model of a seed and its feeds into a folder."""
    seed, folder = item
    case = make_wild(seed)
    if case is None:
        return
    stem = Path(folder) / f"{seed}_{case.fusion}_{case.target}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, f"{stem}.onnx")
    flat = {f"{k}|{n}": a for k, feed in enumerate(case.feeds) for n, a in feed.items()}
    np.savez(f"{stem}.npz", **flat)  # pyright: ignore[reportArgumentType]

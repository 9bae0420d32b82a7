"""Fusion authors: what they are asked, what comes of their answers, and what they cannot change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.ir import Operation

import igniter
from igniter import registry
from igniter.analysis.fusion.author import FusionAuthor, Pair, make_author
from igniter.analysis.fusion.default_author import DefaultAuthor
from igniter.analysis.fusion.finished_regions import FinishedRegion
from igniter.analysis.fusion.graph import FusionGraph, FusionNode
from igniter.analysis.fusion.legality import Reason
from igniter.analysis.fusion.region_growing import Refusal
from igniter.analysis.fusion.region_policy import Group
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import make_fusion, make_onnx
from igniter.compiler.results import Results
from igniter.dialects.fusion import RegionOp
from igniter.runtime.cache import Cache

HERE = "tests.analysis.fusion.test_fusion_author"


@dataclass(frozen=True)
class Everything(FusionAuthor):
    name = "everything"


@dataclass(frozen=True)
class NoNodes(FusionAuthor):
    name = "no-nodes"

    def refuse_node(self, node: FusionNode) -> Reason | None:
        return Reason("cost", f"no {node.name} for me")


@dataclass(frozen=True)
class NoRegions(FusionAuthor):
    name = "no-regions"

    def refuse_region(self, nodes: Sequence[FusionNode]) -> Reason | None:
        return Reason("cost", f"{len(nodes)} nodes are not worth it")


@dataclass(frozen=True)
class Pairs(FusionAuthor):
    """Pairs of nodes, from the last ones backward or from the first ones on"""

    name = "pairs"
    backward: bool = True
    most: int = 2
    trace: tuple[str, ...] = ()

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        return sorted(graph.candidates, reverse=self.backward)

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        if len(a) + len(b) > self.most:
            return Refusal("most", f"{len(a)} and {len(b)} nodes are more than {self.most}")
        return None


@dataclass(frozen=True)
class LastStays(FusionAuthor):
    """Gives back whatever is last in a region, so that nothing is left of it"""

    name = "last-stays"

    def give_back(self, node: FusionNode, inside: Set[Operation]) -> Reason | None:
        return Reason("cost", f"{node.name} is last")


@dataclass(frozen=True)
class Backward(FusionAuthor):
    """Wants the ends of what would be a cycle first"""

    name = "backward"

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        return sorted(graph.candidates, key=lambda pair: pair[0] - pair[1])


@dataclass(frozen=True)
class Failing(FusionAuthor):
    """Fails in one method"""

    name = "failing"
    where: str = ""
    answer: str = "raise"

    def _fail(self, where: str, fine: Any) -> Any:
        if self.where != where:
            return fine
        if self.answer == "raise":
            raise KeyError("oh")
        return {"word": "no", "reason": Reason("illegal", "no"), "refusal": Refusal("cycle", "no")}[self.answer]

    def refuse_node(self, node: FusionNode) -> Reason | None:
        return self._fail("refuse_node", None)

    def refuse_together(self, nodes: Sequence[FusionNode], refused: Sequence[Reason | None]) -> Mapping[int, Reason]:
        return self._fail("refuse_together", {})

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        return self._fail("order", graph.candidates)

    def classify(self, node: FusionNode) -> str:
        return self._fail("classify", "")

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        return self._fail("refuse_merge", None)

    def give_back(self, node: FusionNode, inside: Set[Operation]) -> Reason | None:
        return self._fail("give_back", None)

    def refuse_region(self, nodes: Sequence[FusionNode]) -> Reason | None:
        return self._fail("refuse_region", None)

    def refuse_finished(self, region: FinishedRegion) -> Reason | None:
        return self._fail("refuse_finished", None)

    def within_loop(self) -> FusionAuthor:
        return self._fail("within_loop", self)


@dataclass(frozen=True)
class Stranger(FusionAuthor):
    """Orders a pair that is no candidate"""

    name = "stranger"
    last: int = 3

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        return [(0, self.last)]


@dataclass(frozen=True)
class Modest(DefaultAuthor):
    """Igniter's own, but for Tanh"""

    name = "modest"

    def refuse_node(self, node: FusionNode) -> Reason | None:
        return Reason("cost", "not Tanh") if node.name == "Tanh" else super().refuse_node(node)


@pytest.fixture(autouse=True)
def authors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The authors of this file are installed."""
    own = (Everything, OneAbs, NoNodes, NoRegions, Pairs, LastStays, Backward, Failing, Stranger, Modest)
    found = {author.name: f"{HERE}:{author.__name__}" for author in own}
    monkeypatch.setattr(registry, "FUSION_AUTHORS", {**registry.FUSION_AUTHORS, **found, "wrong": f"{HERE}:HERE"})


HEAD = 'builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {\n'
T = "tensor<8x8xf32>"


def graph_text(nodes: Iterable[tuple[str, str, tuple[str, ...]]], outputs: Sequence[str]) -> str:
    """A graph of nodes `(name, op, operands)` on tensors of one type, with an input `x`."""
    names = ", ".join(f'"{o}"' for o in outputs)
    lines = [HEAD, f'  onnx.graph @main(%x: {T}) attributes {{input_names = ["x"], output_names = [{names}]}} {{\n']
    for name, op, operands in nodes:
        given = ", ".join(f"%{o}" for o in operands)
        types = ", ".join([T] * len(operands))
        lines.append(f'    %{name} = onnx.{op}({given}) <{{node_name = "{name}"}}> : ({types}) -> {T}\n')
    types = ", ".join([T] * len(outputs))
    return "".join([*lines, f"    onnx.return {', '.join(f'%{o}' for o in outputs)} : {types}\n  }}\n}}\n"])


CHAIN = graph_text([("a", "Abs", ("x",)), ("b", "Neg", ("a",)), ("c", "Tanh", ("b",)), ("d", "Relu", ("c",))], ["d"])


def formed(text: str, author: str, more: str = "") -> igniter.Module:
    return igniter.parse(text).run_passes(f'form-fusion-regions{{author="{author}"{more}}}')


def regions(module: igniter.Module) -> list[list[str]]:
    return [
        [op.node_name for op in r.block.ops if hasattr(op, "node_name")]
        for r in module.ir.walk()
        if isinstance(r, RegionOp)
    ]


def reasons(module: igniter.Module) -> dict[str, str]:
    return {r.node: r.message for r in module.remarks.of("form-fusion-regions", "missed")}


def test_the_base_fuses_all_that_can_be():
    assert regions(formed(CHAIN, "everything")) == [["a", "b", "c", "d"]]
    draw = CHAIN.replace("onnx.Neg", "onnx.Bernoulli")
    module = formed(draw, "everything")
    assert regions(module) == [["a"], ["c", "d"]]
    assert "draws different values" in reasons(module)["b"]


@pytest.mark.parametrize("author, said", [("no-nodes", "no Abs for me"), ("no-regions", "4 nodes are not worth it")])
def test_an_author_that_refuses_everything(author: str, said: str):
    module = formed(CHAIN, author)
    assert not regions(module)
    assert reasons(module)["a"] == said
    assert len(reasons(module)) == 4


def test_the_order_decides_who_finds_room():
    assert regions(formed(CHAIN, "pairs{backward=false most=3}")) == [["a", "b", "c"], ["d"]]
    assert regions(formed(CHAIN, "pairs{most=3}")) == [["a"], ["b", "c", "d"]]


def test_refused_merges_are_remarks():
    module = formed(CHAIN, "pairs")
    assert regions(module) == [["a", "b"], ["c", "d"]]
    notes = [r for r in module.remarks.of("form-fusion-regions", "note") if r.node]
    assert [(r.node, r.message, r.details) for r in notes] == [
        ("c", "not in one region with 'b': 1 and 2 nodes are more than 2", {"reason": "most"})
    ]
    (summary,) = (
        r.details["summary"] for r in module.remarks.of("form-fusion-regions", "note") if "summary" in r.details
    )
    assert [m["reason"] for m in summary["missed"]] == ["1 and 2 nodes are more than 2"]


@dataclass(frozen=True)
class OneAbs(FusionAuthor):
    name = "one-abs"

    def classify(self, node: FusionNode) -> str:
        return node.name[:1]

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        # A class without nodes counts 0, and merged groups count together.
        assert a.classes["none"] == 0 and a.classes.total() == len(a)
        return None


def test_a_group_counts_its_classes():
    assert regions(formed(CHAIN, "one-abs")) == [["a", "b", "c", "d"]]


def test_a_node_that_no_other_of_its_region_reads_can_leave():
    """One after the other, the last ones leave, until nothing is left."""
    module = formed(CHAIN, "last-stays")
    assert not regions(module)
    assert reasons(module) == {"a": "Abs is last", "b": "Neg is last", "c": "Tanh is last", "d": "Relu is last"}


CYCLE = graph_text(
    [("a", "Abs", ("x",)), ("m", "Bernoulli", ("a",)), ("b", "Add", ("a", "m")), ("c", "Neg", ("b",))], ["c"]
)


def test_no_author_makes_a_cycle():
    """`a` and `b` would be on both sides of the node between them, which cannot be fused."""
    module = formed(CYCLE, "backward")
    assert regions(module) == [["a"], ["b", "c"]]
    (summary,) = (
        r.details["summary"] for r in module.remarks.of("form-fusion-regions", "note") if "summary" in r.details
    )
    assert ("a", "b", "barrier") in [(m["producer"], m["consumer"], m["kind"]) for m in summary["missed"]]


@st.composite
def random_graphs(draw: st.DrawFn) -> str:
    names = ["x"]
    nodes: list[tuple[str, str, tuple[str, ...]]] = []
    for number in range(draw(st.integers(2, 10))):
        operands = (draw(st.sampled_from(names[-4:])), draw(st.sampled_from(names)))
        op = draw(st.sampled_from(("Add", "Mul", "Neg", "Bernoulli")))
        nodes.append((f"v{number}", op, operands if op in ("Add", "Mul") else operands[:1]))
        names.append(f"v{number}")
    used = {o for _, _, operands in nodes for o in operands}
    return graph_text(nodes, [name for name, _, _ in nodes if name not in used])


@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_graphs(), st.sampled_from(("everything", "backward", "pairs{most=3}", "pairs{most=4 backward=false}")))
def test_regions_can_run_whatever_the_author_says(text: str, author: str):
    """The module verifies, so everything is computed before it is read; and a legal node is fused by `everything`."""
    module = formed(text, author)
    module.ir.verify()
    inside = [name for region in regions(module) for name in region]
    assert len(inside) == len(set(inside)) == text.count("node_name") - text.count("onnx.Bernoulli")


METHODS = {
    "refuse_node": "the fusion author 'failing', asked about 'a', in refuse_node",
    "refuse_together": "the fusion author 'failing' in refuse_together",
    "order": "the fusion author 'failing' in order",
    "classify": "the fusion author 'failing', asked about 'a', in classify",
    "refuse_merge": "the fusion author 'failing', asked about 'a' and 'b', in refuse_merge",
    "give_back": "the fusion author 'failing', asked about 'd', in give_back",
    "refuse_region": "the fusion author 'failing', asked about 'a' and 'b' and 'c', in refuse_region",
    "refuse_finished": "the fusion author 'failing', asked about 'a' and 'b' and 'c', in refuse_finished",
    "within_loop": "the fusion author 'failing' in within_loop",
}


@pytest.mark.parametrize("where", METHODS)
def test_an_author_that_raises_is_named_with_the_node(where: str):
    with pytest.raises(igniter.IgniterError) as error:
        formed(CHAIN, f"failing{{where={where}}}")
    said = f"pass 'form-fusion-regions': {METHODS[where]} failed: KeyError: 'oh' ("
    assert error.value.message.startswith(said) and 'in _fail: raise KeyError("oh"))' in error.value.message


@pytest.mark.parametrize(
    "author, said",
    [
        ("failing{where=refuse_node answer=word}", "in refuse_node answered 'no'; it must answer a Reason"),
        (
            "failing{where=refuse_node answer=reason}",
            "a reason of kind 'illegal'; the kind must be 'cost' or 'measured' or 'view'",
        ),
        ("failing{where=refuse_region answer=word}", "in refuse_region answered 'no'; it must answer a Reason"),
        ("failing{where=refuse_finished answer=word}", "in refuse_finished answered 'no'; it must answer a Reason"),
        ("failing{where=refuse_merge answer=word}", "in refuse_merge answered 'no'; it must answer a Refusal"),
        ("failing{where=refuse_merge answer=refusal}", "the kind 'cycle', which is reserved for Igniter"),
        ("failing{where=within_loop answer=word}", "in within_loop answered 'no'; it must answer a FusionAuthor"),
        ("stranger", "in order names 'a' and 'd', which is not a candidate"),
        ("stranger{last=9}", "in order names (0, 9), which is not a candidate"),
    ],
)
def test_answers_that_are_none(author: str, said: str):
    with pytest.raises(igniter.IgniterError) as error:
        formed(CHAIN, author)
    assert said in error.value.message


@pytest.mark.parametrize(
    "author, more, said",
    [
        ("nobody", "", "there is no fusion author called 'nobody'; there are backward, default, "),
        ("wrong", "", "it must be a class derived from igniter.analysis.fusion.author.FusionAuthor"),
        ("pairs{mots=3}", "", "the fusion author 'pairs' has no option 'mots'"),
        ("pairs{mots=3}", "", "did you mean 'most'?"),
        ("pairs{most=x}", "", "the option 'most' of the fusion author 'pairs' is int, not x"),
        ("everything{most=3}", "", "the fusion author 'everything' has no option 'most': it has no options"),
        ("pairs", " singletons=all", "the fusion author 'pairs' has no option 'singletons'"),
        ("modest{views=all}", " views=all", "'views' is given both to the pass and to the fusion author 'modest'"),
    ],
)
def test_options_are_checked(author: str, more: str, said: str):
    with pytest.raises(igniter.IgniterError) as error:
        formed(CHAIN, author, more)
    assert said in error.value.message


def test_options_of_the_pass_are_the_authors():
    assert make_author("modest{small-flops=3}", {"singletons": "none"}, {"byte_products": False}) == Modest(
        small_flops=3, singletons="none", byte_products=False
    )
    assert make_author("pairs", None, {"byte_products": False}) == Pairs()


def test_one_thing_about_igniters_own_is_changed():
    module = formed(CHAIN, "modest")
    assert regions(module) == [["a", "b"]]
    assert reasons(module) == {"c": "not Tanh", "d": "Relu alone is left to ONNX Runtime (singletons=winning)"}


def compilation(**options: str) -> Compilation:
    module = igniter.parse(CHAIN)
    return Compilation(module.ir, CompileOptions(**options), module.ctx)


def test_the_driver_hands_the_author_on():
    c = compilation(fusion_author="pairs{most=3}")
    make_onnx(c)
    make_fusion(c)
    assert sorted(len(list(r.block.ops)) - 1 for r in c.module.walk() if isinstance(r, RegionOp)) == [1, 3]


@pytest.mark.parametrize(
    "options, said",
    [
        ({"fusion_passes": "lift-constants"}, "'lift-constants' has no form-fusion-regions"),
        ({"fusion_passes": "form-fusion-regions{author=modest}"}, "names the fusion author 'modest'"),
        ({"fusion_author": "pears"}, "did you mean 'pairs'?"),
    ],
)
def test_an_author_that_could_not_decide_is_an_error(options: dict[str, str], said: str):
    c = compilation(**{"fusion_author": "pairs", **options})
    with pytest.raises(igniter.IgniterError, match=said.replace("?", r"\?")):
        make_onnx(c)
        make_fusion(c)


def test_regions_that_are_there_leave_no_author_anything_to_decide():
    with pytest.raises(igniter.IgniterError, match="has no effect: the regions are already formed"):
        formed(CHAIN, "pairs").compile(fusion_author="pairs", verify=False, cache=False)


def test_two_authors_are_an_error():
    said = "fusion_author is given twice, as 'pairs' and in the options as 'modest'"
    with pytest.raises(igniter.IgniterError, match=said):
        igniter.parse(CHAIN).compile(fusion_author="pairs", options=CompileOptions(fusion_author="modest"))


@pytest.fixture
def keys(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """The cache key of a compilation with these options."""
    model = tmp_path / "model.onnx"
    igniter.parse(CHAIN).save(model)
    cache = Cache(tmp_path / "cache", 1 << 20)
    said: list[CompileOptions] = []

    def of(cache_: Cache, path: Any, options: CompileOptions, strict: bool) -> None:
        said.append(options)
        raise InterruptedError

    def key(**options: Any) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(Results, "of", staticmethod(of))
            with pytest.raises(InterruptedError):
                igniter.compile(model, **options)
        results = Results.of(cache, model, said[-1], False)
        assert results is not None
        return results.settings

    yield key


def test_results_are_known_by_their_author(keys: Callable[..., str]):
    asked: list[dict[str, Any]] = [
        {},
        {"fusion_author": "pairs"},
        {"fusion_author": "pairs{most=3}"},
        {"options": CompileOptions(), "fusion_author": "modest"},
        {"sanitize": True},
    ]
    found = [keys(**options) for options in asked]
    assert len(set(found)) == len(found)
    assert found[1] == keys(options=CompileOptions(fusion_author="pairs"))


@pytest.mark.slow
def test_what_is_compiled_says_its_author(tmp_path: Any):
    artifact = igniter.parse(CHAIN).compile(tmp_path / "out", fusion_author="pairs", cache=False)
    assert artifact.report["options"]["fusion_author"] == "pairs"
    (info,) = artifact.library_infos()
    assert info["options"]["fusion_author"] == "pairs"
    assert artifact.verify()

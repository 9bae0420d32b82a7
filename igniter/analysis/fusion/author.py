"""Fusion authors: `form-fusion-regions` asks one where lowering leaves a choice.

    legality    nodes with a lowering (`legality.py`)        not the author's: it can refuse more, and allow no more
    refuse_node, refuse_together                             nodes left to ONNX Runtime all the same
    order                                                    the candidate pairs to try first
    refuse_merge                                             the merges that are not made
    cycles      exact (`region_growing.py`)                  not the author's, nor are the limits on a region's size
    give_back, refuse_region                                 the grown regions and nodes that are not worth a kernel
    refuse_finished                                          the same, with the neighbours of a region

A refusal is a `Reason` or a `Refusal`, with a message for the user. `default` (`default_author.py`) is Igniter's own
author. A package adds one by an entry point of the group `igniter.fusion_authors`; its options are the fields of the
class, each with a default, like those of a pass.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from xdsl.ir import Operation
from xdsl.utils.arg_spec import ArgSpecConvertible

from igniter.analysis.authors import AuthorError, AuthorKind
from igniter.analysis.fusion.legality import Reason
from igniter.crashes import crash_text
from igniter.registry import load_fusion_author

if TYPE_CHECKING:
    from igniter.analysis.fusion.finished_regions import FinishedRegion
    from igniter.analysis.fusion.graph import FusionGraph, FusionNode
    from igniter.analysis.fusion.region_growing import Refusal
    from igniter.analysis.fusion.region_policy import Group

DEFAULT = "default"
"""The name of Igniter's own author."""

CHOICE_KINDS = frozenset(("cost", "measured", "view"))
"""The possible kinds of an author's `Reason`: the node could be compiled, and is better left to ONNX Runtime."""

Pair = tuple[int, int]
"""Two nodes of a `FusionGraph` by number, the earlier one first."""


@dataclass(frozen=True)
class FusionAuthor(ArgSpecConvertible):
    """The base of authors. It refuses nothing: every compilable node is fused.

    An author is a frozen dataclass with a `name`; its fields are its options. It keeps no state, and reads only its
    arguments.
    """

    def refuse_node(self, node: FusionNode) -> Reason | None:
        """Returns the reason why a node with a lowering is left to ONNX Runtime in any case; `None` to allow it."""
        return None

    def refuse_together(self, nodes: Sequence[FusionNode], refused: Sequence[Reason | None]) -> Mapping[int, Reason]:
        """Returns the nodes left because others are, by their number in `nodes`, all nodes of a graph. `refused` has
        the reasons of the nodes refused by legality or by `refuse_node`."""
        return {}

    def classify(self, node: FusionNode) -> str:
        """Returns a class for `FusionGraph.classes` and `Group.classes`; "" for uncounted nodes."""
        return ""

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        """Returns the candidates in the order of trial. Omitted ones are tried last, in the graph's order."""
        return graph.candidates

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        """Returns the reason why two groups do not merge, or `None`; `a` is before `b` in the graph of groups.

        If the refusal is not `final`, the author is asked again when one of the two has grown.
        """
        return None

    def give_back(self, node: FusionNode, inside: Set[Operation]) -> Reason | None:
        """Returns the reason why a node without readers in its finished region leaves the region, or `None`. `inside`
        is the region."""
        return None

    def refuse_region(self, nodes: Sequence[FusionNode]) -> Reason | None:
        """Returns the reason why a finished region gets no kernel, and all of its nodes are left to ONNX Runtime; or
        `None`."""
        return None

    def refuse_finished(self, region: FinishedRegion) -> Reason | None:
        """Returns the reason why a region gets no kernel beside its neighbours, or `None`. It is asked once all regions
        are finished, and all answers count together."""
        return None

    def within_loop(self) -> FusionAuthor:
        """Returns the author for the body of a program's loop. A node in no region there leaves the whole loop to ONNX
        Runtime; the loop's nodes have passed `refuse_node` before."""
        return self


# -- making one -------------------------------------------------------------------------------------------------------


def make_author(
    text: str, asked: Mapping[str, object] | None = None, figures: Mapping[str, object] | None = None
) -> FusionAuthor:
    """Returns the author named by `text`, with its options: see `AuthorKind.make`."""
    return AuthorKind("fusion author", FusionAuthor, load_fusion_author).make(text, asked, figures)


# -- asking one -------------------------------------------------------------------------------------------------------

T = TypeVar("T")


@contextmanager
def asking(author: FusionAuthor, what: str, *labels: str) -> Generator[None]:
    """Adds the author, the method and the nodes to an error."""
    try:
        yield
    except AuthorError:
        raise
    except Exception as error:  # a plug-in's code raises anything
        raise AuthorError(f"{_where(author, what, labels)} failed: {crash_text(error)}") from error


def checked(author: FusionAuthor, what: str, answer: T, expected: type, *labels: str) -> T:
    """Returns an answer after checking it: `None` or the method's type, and a `Reason` of a kind that authors may
    give."""
    if answer is not None and not isinstance(answer, expected):
        raise AuthorError(
            f"{_where(author, what, labels)} answered {answer!r}; it must answer a {expected.__name__} or None"
        )
    if isinstance(answer, Reason) and answer.kind not in CHOICE_KINDS:
        kinds = " or ".join(f"'{k}'" for k in sorted(CHOICE_KINDS))
        raise AuthorError(
            f"{_where(author, what, labels)} gives a reason of kind '{answer.kind}'; the kind must be {kinds}"
        )
    return answer


def _where(author: FusionAuthor, what: str, labels: Sequence[str]) -> str:
    name = getattr(type(author), "name", type(author).__name__)
    at = f", asked about {' and '.join(repr(label) for label in labels)}," if labels else ""
    return f"the fusion author '{name}'{at} in {what}"

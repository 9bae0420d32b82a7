"""Who decides about fusion: a *fusion author*, which `form-fusion-regions` asks where lowering leaves a choice.

    legality    what has a lowering (`legality.py`)          not the author's: it can refuse more, and allow no more
    refuse_node, refuse_together                             which nodes stay with ONNX Runtime all the same
    order                                                    which candidate pairs are tried first
    refuse_merge                                             whether two regions become one
    cycles      exact (`region_growing.py`)                  not the author's, nor are the limits on a region's size
    give_back, refuse_region                                 whether what has grown is worth a kernel

A refusal is a `Reason` or a `Refusal`, with words that the user reads. `default` (`default_author.py`) is Igniter's own
author. A package adds one by an entry point of the group `igniter.fusion_authors`; its options are the fields of the
class, each with a default, as those of a pass are.
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
from igniter.registry import load_fusion_author

if TYPE_CHECKING:
    from igniter.analysis.fusion.graph import FusionGraph, FusionNode
    from igniter.analysis.fusion.region_growing import Refusal
    from igniter.analysis.fusion.region_policy import Group

DEFAULT = "default"
"""The name of Igniter's own author."""

CHOICE_KINDS = frozenset(("cost", "view"))
"""What the `kind` of an author's `Reason` can be: the node could be compiled, and is better off in ONNX Runtime."""

Pair = tuple[int, int]
"""Two nodes of a `FusionGraph` by number, the earlier one first."""


@dataclass(frozen=True)
class FusionAuthor(ArgSpecConvertible):
    """The base of authors. As it stands it has nothing against anything: all that can be compiled is fused.

    An author is a frozen dataclass with a `name`; its fields are its options. It keeps no state: what it is asked
    about is all that it may look at.
    """

    def refuse_node(self, node: FusionNode) -> Reason | None:
        """Why a node that has a lowering is left to ONNX Runtime, whatever it could be fused with."""
        return None

    def refuse_together(self, nodes: Sequence[FusionNode], refused: Sequence[Reason | None]) -> Mapping[int, Reason]:
        """The nodes that are left because others are, by their number in `nodes`, which are all of a graph; `refused`
        says why those are that cannot be fused, or that `refuse_node` refused."""
        return {}

    def classify(self, node: FusionNode) -> str:
        """A word to find again in `FusionGraph.classes` and `Group.classes`; "" for what is not to be counted."""
        return ""

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        """The candidates, first the pair to be tried first. What is left out is tried last, in the graph's order."""
        return graph.candidates

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        """Why two groups do not become one; `a` stands before `b` in the graph of groups.

        A refusal that is not `final` is asked for again when one of the two has grown.
        """
        return None

    def give_back(self, node: FusionNode, inside: Set[Operation]) -> Reason | None:
        """Why a node of a finished region that no other node of it reads leaves the region. `inside` is the region."""
        return None

    def refuse_region(self, nodes: Sequence[FusionNode]) -> Reason | None:
        """Why a finished region gets no kernel, and all of its nodes are left to ONNX Runtime."""
        return None

    def within_loop(self) -> FusionAuthor:
        """The author for the body of a loop that a program holds. There a node that is in no region has ONNX Runtime
        run the whole loop; the loop's nodes have passed `refuse_node` before."""
        return self


# -- making one -------------------------------------------------------------------------------------------------------


def make_author(
    text: str, asked: Mapping[str, object] | None = None, figures: Mapping[str, object] | None = None
) -> FusionAuthor:
    """The author that `text` names, with its options: see `AuthorKind.make`."""
    return AuthorKind("fusion author", FusionAuthor, load_fusion_author).make(text, asked, figures)


# -- asking one -------------------------------------------------------------------------------------------------------

T = TypeVar("T")


@contextmanager
def asking(author: FusionAuthor, what: str, *labels: str) -> Generator[None]:
    """Says of an error which author failed, in which method, and at which nodes."""
    try:
        yield
    except AuthorError:
        raise
    except Exception as error:
        raise AuthorError(f"{_where(author, what, labels)} failed: {type(error).__name__}: {error}") from error


def checked(author: FusionAuthor, what: str, answer: T, expected: type, *labels: str) -> T:
    """An answer that is None or of the type that the method gives, a `Reason` of a kind that is an author's to give."""
    if answer is not None and not isinstance(answer, expected):
        raise AuthorError(f"{_where(author, what, labels)} answered {answer!r}, which is no {expected.__name__}")
    if isinstance(answer, Reason) and answer.kind not in CHOICE_KINDS:
        kinds = " or ".join(f"'{k}'" for k in sorted(CHOICE_KINDS))
        raise AuthorError(
            f"{_where(author, what, labels)} gives a reason of kind '{answer.kind}': it has to be {kinds}"
        )
    return answer


def _where(author: FusionAuthor, what: str, labels: Sequence[str]) -> str:
    name = getattr(type(author), "name", type(author).__name__)
    at = f", asked about {' and '.join(repr(label) for label in labels)}," if labels else ""
    return f"the fusion author '{name}'{at} in {what}"

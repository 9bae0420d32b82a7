"""The choice between a region's kernel and ONNX Runtime's nodes, by measured points (`measured_points.py`).

A region that stands alone takes the time that was measured for its like. Between other regions, leaving it costs more:

    kernel:        its time alone, less the changes of layout that its neighbours save it
    ONNX Runtime:  its time, the same changes of layout on both sides, and two launches, because the program is cut

A change of layout reads and writes a tensor of three or more dims once, at the machine model's rate.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from igniter.analysis.fusion.cost import CostModel
from igniter.analysis.fusion.finished_regions import FinishedRegion
from igniter.analysis.fusion.legality import Reason, as_tensor
from igniter.analysis.fusion.measured_points import BEHIND, Measured, Prediction
from igniter.analysis.fusion.region_features import region_features

LAUNCHES = 2
"""The launches of a program cut in two, besides the kernel's own: the node between, and the second program."""
IMAGE_DIMS = 3
"""The least dims of a tensor whose layout changes."""


def measured_reason(region: FinishedRegion, points: Measured) -> Reason | None:
    """Returns the reason to leave a region to ONNX Runtime; `None` to compile it."""
    cost = region.nodes[0].cost
    features = region_features([node.op for node in region.nodes], cost.known)
    found = None if features is None else points.predict(features)
    if found is None or not found.is_behind:
        return None
    if not region.stands_alone and not _pays_between(region, found, cost):
        return None
    names = " + ".join(node.name for node in region.nodes[:3]) + (" + ..." if len(region.nodes) > 3 else "")
    near = f"{found.points} point{'s' if found.points > 1 else ''} near"
    return Reason(
        "measured",
        f"{names} is left to ONNX Runtime: a kernel was measured at {found.ratio:.2f} of its time "
        f"({points.isa}, {near})",
    )


def _pays_between(region: FinishedRegion, found: Prediction, cost: CostModel) -> bool:
    """True if ONNX Runtime is faster with the changes of layout and the launches around its node."""
    if found.ort_us is None:
        return False
    moved = sum(2 * cost.bytes(value) for value in region.shared if _is_image(value))
    changes = cost.saved(0, moved)
    theirs = found.ort_us + changes + cost.saved(LAUNCHES, 0)
    return found.ort_us * found.ratio - changes > (BEHIND + found.noise) * theirs


def _is_image(value: SSAValue) -> bool:
    tensor = as_tensor(value.type)
    return tensor is not None and tensor.get_num_dims() >= IMAGE_DIMS

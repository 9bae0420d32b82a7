"""The `loop` dialect: the computation of a fused kernel (`structured`) and its implementation (`scheduled`)."""

from __future__ import annotations

from xdsl.ir import Dialect

from igniter.dialects.loop.algorithms import Algorithm, PrefixAttr, ScatterAttr, TopAttr
from igniter.dialects.loop.attrs import (
    COMBINERS,
    AxesAttr,
    Axis,
    AxisKind,
    Combiner,
    element_bytes,
    is_float,
    is_storable,
    is_unsigned,
    scalar_type,
    stored_bytes,
)
from igniter.dialects.loop.bodies import AccessOp, Clause, DotBytesOp, IndexOp, ReadOp, YieldOp
from igniter.dialects.loop.calls import CallOp, ClockOp, SliceOp
from igniter.dialects.loop.func import FuncOp
from igniter.dialects.loop.launch import LaunchOp
from igniter.dialects.loop.memory import AccumulateOp, LoadOp, MemoryOp, PrefetchOp, ReduceLanesOp, StoreOp, TransposeOp
from igniter.dialects.loop.procedure import ProcedureOp
from igniter.dialects.loop.schedule import ScheduleAttr
from igniter.dialects.loop.scheduled import AllocOp, ForOp, IfOp
from igniter.dialects.loop.sharing import IfSharedOp
from igniter.dialects.loop.storage import StorageAttr
from igniter.dialects.loop.structured import ComputeOp, KernelOp, NestOp, ReturnOp, ViewOp
from igniter.dialects.loop.team import Team, TeamAttr
from igniter.dialects.loop.tiles import TileProductOp
from igniter.dialects.loop.typical import SizesAttr
from igniter.dialects.loop.words import LoopWords, LoopWordsAttr

Loop = Dialect(
    "loop",
    [
        KernelOp,
        ReturnOp,
        ViewOp,
        NestOp,
        ProcedureOp,
        ReadOp,
        DotBytesOp,
        IndexOp,
        YieldOp,
        FuncOp,
        AllocOp,
        ForOp,
        IfOp,
        IfSharedOp,
        LoadOp,
        StoreOp,
        AccumulateOp,
        PrefetchOp,
        ReduceLanesOp,
        TransposeOp,
        TileProductOp,
        CallOp,
        LaunchOp,
        ClockOp,
        SliceOp,
    ],
    [AxesAttr, LoopWordsAttr, PrefixAttr, ScatterAttr, ScheduleAttr, SizesAttr, StorageAttr, TeamAttr, TopAttr],
)

__all__ = [
    "COMBINERS",
    "AccessOp",
    "AccumulateOp",
    "Algorithm",
    "AllocOp",
    "AxesAttr",
    "Axis",
    "AxisKind",
    "CallOp",
    "Clause",
    "ClockOp",
    "Combiner",
    "ComputeOp",
    "DotBytesOp",
    "ForOp",
    "FuncOp",
    "IfOp",
    "IfSharedOp",
    "IndexOp",
    "KernelOp",
    "LaunchOp",
    "LoadOp",
    "Loop",
    "LoopWords",
    "MemoryOp",
    "NestOp",
    "PrefetchOp",
    "PrefixAttr",
    "ProcedureOp",
    "ReadOp",
    "ReduceLanesOp",
    "ReturnOp",
    "ScatterAttr",
    "ScheduleAttr",
    "SliceOp",
    "StoreOp",
    "Team",
    "TileProductOp",
    "TopAttr",
    "TransposeOp",
    "ViewOp",
    "YieldOp",
    "element_bytes",
    "is_float",
    "is_storable",
    "is_unsigned",
    "scalar_type",
    "stored_bytes",
]

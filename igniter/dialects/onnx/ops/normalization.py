"""Elementwise ops."""

from __future__ import annotations

from igniter.dialects.onnx.registry import OpSpec

SPECS: list[OpSpec] = []

"""Metadata kept in the parsed message until its first use.

Exporters write the origin of a node beside it: PyTorch's five texts of 2,300 characters a node, several times as much
as the rest of the model. Few commands read any of them, and then one of the five.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import onnx
from immutabledict import immutabledict
from xdsl.ir import Attribute

from igniter.dialects.onnx.attributes import text_attr


class LateTexts(immutabledict[str, Attribute]):
    """Texts by key, as the entries of an immutable message. A `DictionaryAttr` holds it, and it equals the dictionary
    of the same texts."""

    _keys: tuple[str, ...]
    _entries: Sequence[onnx.StringStringEntryProto]

    @staticmethod
    def of(keys: tuple[str, ...], entries: Sequence[onnx.StringStringEntryProto]) -> LateTexts:
        """Wraps entries with these keys, which must be distinct."""
        made = object.__new__(LateTexts)
        made._keys, made._entries, made._hash = keys, entries, None
        return made

    @cached_property
    def _dict(self) -> dict[str, Attribute]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {key: text_attr(entry.value) for key, entry in zip(self._keys, self._entries, strict=True)}

    def __getitem__(self, key: str) -> Attribute:
        if "_dict" in self.__dict__:
            return self._dict[key]
        try:
            return text_attr(self._entries[self._keys.index(key)].value)
        except ValueError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        return key in self._keys if "_dict" not in self.__dict__ else key in self._dict

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys if "_dict" not in self.__dict__ else self._dict)

    def __len__(self) -> int:
        return len(self._keys if "_dict" not in self.__dict__ else self._dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return immutabledict, (dict(self.items()),)

# SPDX-License-Identifier: Apache-2.0
"""Converts numbers and params to the library's types: flattens nested mappings, converts tensors and NumPy scalars to Python
numbers. Needs no array library."""
from __future__ import annotations

import json
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

DEPTH_MAX = 30


def number(value: Any) -> float | None:
    """A float, or None if value is not a single number. Waits for the device of a tensor."""
    if isinstance(value, (str, bytes, bytearray)) or value is None:
        return None
    try:
        return float(value.item() if hasattr(value, 'item') else value)
    except Exception:  # other types may raise anything: not a number
        return None


def flatten(values: Mapping[Any, Any], joint: str, prefix: str = '', depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yields (key, leaf) of a nested mapping with joined keys. A mapping below DEPTH_MAX others is a leaf: it may contain itself."""
    for key in values.keys():
        name, value = prefix + str(key), values[key]
        if isinstance(value, Mapping) and len(value) and depth < DEPTH_MAX:
            yield from flatten(value, joint, name + joint, depth + 1)
        else:
            yield name, value


def as_mapping(config: Any) -> Mapping[str, Any]:
    """Converts settings to a mapping: an argparse namespace, a dataclass or an object with attributes."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return config
    for method in ('to_dict', 'model_dump', '_asdict'):
        if callable(getattr(config, method, None)) and not isinstance(config, type):
            mapping: Mapping[str, Any] = getattr(config, method)()
            return mapping
    if hasattr(config, '__dict__'):
        return {k: v for k, v in vars(config).items() if not k.startswith('_')}
    raise TypeError('config is a %s: expected a mapping, a namespace or a dataclass' % type(config).__name__)


def plain(value: Any) -> bool | int | float | str:
    """A param as bool, int, float or str; equal params give equal text in all processes."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.decode('utf-8', 'replace')
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        ordered = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        try:
            return json.dumps(ordered, default=lambda inner: plain(inner), ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):  # keys that JSON lacks, a list that contains itself
            return _text(ordered)
    if hasattr(value, 'item') and getattr(value, 'size', 1) in (1, ()):
        try:
            return plain(value.item())
        except Exception:  # a meta tensor, an array of objects
            pass
    if callable(value) and hasattr(value, '__qualname__'):
        return '%s.%s' % (getattr(value, '__module__', ''), value.__qualname__)
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # a __str__ that fails must not end a training
        return object.__repr__(value)

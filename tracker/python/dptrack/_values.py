"""What people hand over as numbers and params, in the library's terms: nested mappings flattened, tensors and NumPy's
numbers turned into Python's. Knows no run and needs no array library."""
import json
from collections.abc import Mapping


def number(value):
    """A float, or None for what is no single number. A tensor on a device is waited for."""
    if isinstance(value, (str, bytes, bytearray)) or value is None:
        return None
    try:
        return float(value.item() if hasattr(value, 'item') else value)
    except Exception:  # whatever a foreign type raises, it is no number
        return None


def flatten(values, joint, prefix=''):
    """(key, leaf) of a nested mapping; keys of inner ones are joined to the outer's."""
    for key in values.keys():
        name, value = prefix + str(key), values[key]
        if isinstance(value, Mapping) and len(value):
            yield from flatten(value, joint, name + joint)
        else:
            yield name, value


def as_mapping(config):
    """A mapping of whatever carries settings: argparse's namespace, a dataclass, an object with attributes."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return config
    for method in ('to_dict', 'model_dump', '_asdict'):
        if callable(getattr(config, method, None)) and not isinstance(config, type):
            return getattr(config, method)()
    if hasattr(config, '__dict__'):
        return {k: v for k, v in vars(config).items() if not k.startswith('_')}
    raise TypeError('config is a %s: a mapping, a namespace or a dataclass is needed' % type(config).__name__)


def plain(value):
    """A param as bool, int, float or str. Nothing of it differs between two processes that mean the same."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.decode('utf-8', 'replace')
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        ordered = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return json.dumps(ordered, default=lambda inner: plain(inner), ensure_ascii=False)
    if hasattr(value, 'item') and getattr(value, 'size', 1) in (1, ()):
        try:
            return plain(value.item())
        except Exception:  # a meta tensor, an array of objects
            pass
    if callable(value) and hasattr(value, '__qualname__'):
        return '%s.%s' % (getattr(value, '__module__', ''), value.__qualname__)
    return str(value)

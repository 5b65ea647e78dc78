"""Weights and images that are made from a rule, so that no large file need be committed: the same numbers for the script
that recorded a reference and for the test that compares with it. f32, a table repeated from another place for each
tensor."""
import array

IMAGES = (2, 3, 40, 40)
_N = 4099
_TABLE = [((j * 40503) % 65536) / 65536 - 0.5 for j in range(_N)]


def _values(number, count, scale, offset):
    table = array.array("f", (offset + scale * v for v in _TABLE))
    start = number * 577 % _N
    table = table[start:] + table[:start]
    return (table * (count // _N + 1))[:count]


def tensor(number, name, shape):
    """Values of the tensor that is number-th in its net, flat, as an array; int64 for a count of batches."""
    count = 1
    for d in shape:
        count *= d
    if name.endswith("num_batches_tracked"):
        return array.array("q", [7])
    if len(shape) > 1:
        return _values(number, count, (24.0 * shape[0] / count) ** 0.5, 0)
    if name.endswith("running_var") or name.endswith("weight"):
        return _values(number, count, 0.5, 0.875)
    return _values(number, count, 0.2, 0)


def spread(values):
    """Up to 256 of the values, from beginning to end, by an odd stride (a kernel's places are all met)."""
    return values[::len(values) // 256 | 1]


def images(shape=IMAGES):
    count = 1
    for d in shape:
        count *= d
    return _values(11, count, 2, 0.125)

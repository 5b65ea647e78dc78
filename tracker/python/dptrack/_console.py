"""What the program prints goes to its runs too: the write method of sys.stdout and sys.stderr is wrapped, the streams stay
what they are. What C code prints past Python is not seen. Knows of a run only that it has printed(stream, text)."""
import sys

_runs = []
_wrapped = {}  # stream number -> (stream, its own write)
STREAMS = {1: 'stdout', 2: 'stderr'}


def _wrap(number, stream):
    write = stream.write

    def tee(text):
        written = write(text)
        for run in _runs:
            run.printed(number, text)
        return written

    stream.write = tee
    _wrapped[number] = (stream, write)


def add(run):
    """From now on the run hears what is printed. A stream that cannot be wrapped (None, one without attributes) is left."""
    for number, name in STREAMS.items():
        stream = getattr(sys, name)
        if number not in _wrapped or _wrapped[number][0] is not stream:
            try:
                _wrap(number, stream)
            except AttributeError:
                continue
    _runs.append(run)


def remove(run):
    if run in _runs:
        _runs.remove(run)
    if not _runs:
        for stream, write in _wrapped.values():
            try:
                del stream.write
            except AttributeError:
                stream.write = write
        _wrapped.clear()

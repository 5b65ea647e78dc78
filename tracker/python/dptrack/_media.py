# SPDX-License-Identifier: Apache-2.0
"""Media for Run.log: images, histograms, texts, tables, audio, videos, HTML and Plotly figures. Each class encodes its data for libdptrack. Files are recorded
unchanged; arrays are converted with NumPy."""
from __future__ import annotations

import ctypes
import os
import struct

from dptrack._run import utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from dptrack._library import Library

    Content = Any  # a path, bytes, or an array


class Bytes(ctypes.Structure):
    """struct dptrack_bytes."""
    _fields_ = [('at', ctypes.c_char_p), ('n', ctypes.c_size_t)]


def _array(data: Any) -> Any:
    """Converts an array, a tensor on any device or nested lists to a NumPy array."""
    import numpy
    for method in ('detach', 'cpu'):
        if hasattr(data, method):
            data = getattr(data, method)()
    if hasattr(data, 'float') and 'bfloat16' in str(getattr(data, 'dtype', '')):
        data = data.float()
    return numpy.asarray(data)


def _file(data: Content) -> bytes | None:
    """The bytes of a path or of bytes; None for anything else."""
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    if isinstance(data, str) or hasattr(data, '__fspath__'):
        with open(data, 'rb') as f:
            return f.read()
    return None


class Media:
    """Base class of the media that Run.log records."""

    def record(self, library: Library, handle: Any, step: int, key: bytes, hidden: Callable[[str], str]) -> None:
        """hidden: function that removes secrets from a text."""
        raise NotImplementedError


def _png(width: int, height: int, channels: int, rows: bytes) -> bytes:
    """A PNG file of 8 bits a channel; rows: bytes, row by row."""
    import zlib
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    line = width * channels
    raw = b''.join(b'\0' + rows[y * line:(y + 1) * line] for y in range(height))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, kind, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(raw, 6)) + chunk(b'IEND', b''))


def _png_of_array(data: Any) -> tuple[bytes, int, int]:
    import numpy
    pixels = _array(data)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3:
        raise ValueError('an image has 2 or 3 dimensions, not %d' % pixels.ndim)
    if pixels.shape[2] not in (1, 2, 3, 4) and pixels.shape[0] in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.shape[2] not in (1, 2, 3, 4):
        raise ValueError('an image of shape %s has no channels' % (pixels.shape,))
    if pixels.dtype.kind not in 'biufO':
        raise ValueError('an image of %s cannot be shown: expected numbers' % pixels.dtype)
    if pixels.dtype == bool:
        pixels = pixels.astype(numpy.uint8) * 255
    if pixels.dtype.kind == 'f':  # 0 to 1, or 0 to 255
        pixels = numpy.nan_to_num(pixels)
        pixels = numpy.rint(pixels * 255 if pixels.size == 0 or pixels.max() <= 1 else pixels)
    pixels = numpy.ascontiguousarray(numpy.clip(pixels, 0, 255).astype(numpy.uint8))
    height, width, channels = pixels.shape
    return _png(width, height, channels, pixels.tobytes()), width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 < len(data) and data[at] == 0xff:
        marker, length = data[at + 1], struct.unpack('>H', data[at + 2:at + 4])[0]
        if 0xc0 <= marker <= 0xcf and marker not in (0xc4, 0xc8, 0xcc):
            height, width = struct.unpack('>HH', data[at + 5:at + 9])
            return width, height
        at += 2 + length
    raise ValueError('a JPEG file without a size')


def _size(data: bytes) -> tuple[int, int]:
    """Width and height of an encoded image."""
    if len(data) < 24:
        raise ValueError('an image file of %d bytes: expected a PNG, JPEG or GIF file' % len(data))
    if data[:8] == b'\x89PNG\r\n\x1a\n':
        width, height = struct.unpack('>II', data[16:24])
        return width, height
    if data[:3] == b'\xff\xd8\xff':
        return _jpeg_size(data)
    if data[:4] == b'GIF8':
        width, height = struct.unpack('<HH', data[6:10])
        return width, height
    raise ValueError('an image file is a PNG, JPEG or GIF file')


class Image(Media):
    """An image.

    Args:
        data: A path or bytes of a PNG, JPEG or GIF file, an array or tensor (HxW, HxWxC or CxHxW; floats of 0 to 1, or 0 to
            255), a PIL image, or a Matplotlib figure.
        caption: A text that is shown below it.

    Raises:
        ValueError: The shape of the array or the format of the file is not supported.
        OSError: The file cannot be read.

    Example:
        >>> run.log({"samples": dptrack.Image(pixels, caption="step 100")}, step=100)
    """

    def __init__(self, data: Content, caption: object = None) -> None:
        self.caption, encoded = caption, _file(data)
        if encoded is None and hasattr(data, 'savefig'):
            import io
            held = io.BytesIO()
            data.savefig(held, format='png')
            encoded = held.getvalue()
        if encoded is None:
            self.file, self.width, self.height = _png_of_array(data)
        else:
            self.file, (self.width, self.height) = encoded, _size(encoded)

    def record(self, library: Library, handle: Any, step: int, key: bytes, hidden: Callable[[str], str]) -> None:
        library.image(handle, step, key, ctypes.byref(Bytes(self.file, len(self.file))), self.width, self.height)
        if self.caption:
            library.text(handle, step, key + b'/caption', utf8(hidden(str(self.caption))))


class Audio(Media):
    """A sound.

    Args:
        data: A path or bytes of a sound file (WAV, FLAC, Ogg, MP3), or samples from -1 to 1 (frames, or frames x channels).
        sample_rate: Of samples, in Hz.
        caption: Accepted for W&B's sake.

    Raises:
        ValueError: Samples without a sample_rate.
        OSError: The file cannot be read.

    Example:
        >>> run.log({"speech": dptrack.Audio(samples, sample_rate=16000)}, step=100)
    """

    def __init__(self, data: Content, sample_rate: int | None = None, caption: object = None) -> None:
        encoded = _file(data)
        self.type = 'audio/wav'
        if encoded is None:
            if not sample_rate:
                raise ValueError('samples need a sample_rate')
            encoded = self._wav(_array(data), int(sample_rate))
        self.file = encoded

    @staticmethod
    def _wav(samples: Any, rate: int) -> bytes:
        import io
        import wave

        import numpy
        if samples.ndim == 1:
            samples = samples[:, None]
        if samples.dtype.kind == 'f':
            samples = numpy.rint(numpy.clip(numpy.nan_to_num(samples), -1, 1) * 32767)
        held = io.BytesIO()
        with wave.open(held, 'wb') as f:
            f.setnchannels(samples.shape[1])
            f.setsampwidth(2)
            f.setframerate(rate)
            f.writeframes(samples.astype('<i2').tobytes())
        return held.getvalue()

    def record(self, library: Library, handle: Any, step: int, key: bytes, hidden: Callable[[str], str]) -> None:
        library.audio(handle, step, key, ctypes.byref(Bytes(self.file, len(self.file))), self.type.encode())


class Histogram(Media):
    """A histogram. Values that are not finite are left out.

    Args:
        values: An array, a tensor or a list.
        bins: Number of bins.
        np_histogram: (counts, edges) as numpy.histogram returns them, in place of values.

    Raises:
        ValueError: The number of edges is not that of the counts plus 1.

    Example:
        >>> run.log({"weights": dptrack.Histogram(layer.weight)}, step=100)
    """

    def __init__(self, values: Any = None, bins: int = 64, np_histogram: tuple[Any, Any] | None = None) -> None:
        if np_histogram is not None:
            counts, edges = np_histogram
        else:
            import numpy
            flat = _array(values).ravel()
            if flat.dtype.kind not in 'biuf':
                raise ValueError('a histogram needs numbers, not %s' % flat.dtype)
            flat = flat[numpy.isfinite(flat)].astype(numpy.float64)
            counts, edges = numpy.histogram(flat, bins=bins) if flat.size else ([0], [0, 0])
        self.counts, self.edges = [float(c) for c in counts], [float(e) for e in edges]
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError('a histogram of %d counts has %d edges, not %d' % (len(self.counts), len(self.counts) + 1, len(self.edges)))

    def record(self, library: Library, handle: Any, step: int, key: bytes, hidden: Callable[[str], str]) -> None:
        n = len(self.counts)
        library.histogram(handle, step, key, (ctypes.c_double * (n + 1))(*self.edges), (ctypes.c_double * n)(*self.counts), n)


class Text(Media):
    """A text.

    Args:
        text: Markdown.

    Example:
        >>> run.log({"answer": dptrack.Text("**42**")}, step=100)
    """

    def __init__(self, text: object) -> None:
        self.text = str(text)

    def record(self, library: Library, handle: Any, step: int, key: bytes, hidden: Callable[[str], str]) -> None:
        library.text(handle, step, key, utf8(hidden(self.text)))


class Html(Text):
    """A document of HTML. The page shows it in a frame whose scripts reach no address.

    Args:
        data: HTML as a string or an open file, or the path of an HTML file.

    Raises:
        OSError: The file cannot be read.

    Example:
        >>> run.log({"report": dptrack.Html("<h1>42 errors</h1>")}, step=100)
    """

    def __init__(self, data: Any) -> None:
        if hasattr(data, 'read'):
            data = data.read()
        elif hasattr(data, '__fspath__') or (isinstance(data, str) and data.endswith(('.html', '.htm')) and os.path.isfile(data)):
            with open(data, encoding='utf-8', errors='replace') as f:
                data = f.read()
        start = str(data).lstrip()[:9].lower()
        super().__init__(data if start.startswith(('<!doctype', '<html')) else '<!doctype html><meta charset="utf-8">' + str(data))


class Plotly(Text):
    """A figure of Plotly.

    Args:
        figure: A figure of the package plotly, or its JSON as a string or a dict.

    Example:
        >>> run.log({"roc": dptrack.Plotly({"data": [{"type": "scatter", "x": [0, 1], "y": [0, 1]}]})}, step=100)
    """

    def __init__(self, figure: Any) -> None:
        if hasattr(figure, 'to_json'):
            figure = figure.to_json()
        if not isinstance(figure, str):
            import json
            figure = json.dumps(figure)
        super().__init__(figure)


class Video(Media):
    """A film.

    Args:
        data: A path or bytes of an MP4, WebM or GIF file.
        caption: A text below it.

    Raises:
        ValueError: The data is no such file.
        OSError: The file cannot be read.

    Example:
        >>> run.log({"rollout": dptrack.Video("rollout.mp4")}, step=100)
    """

    def __init__(self, data: Content, caption: object = None) -> None:
        file, self.caption = _file(data), caption
        if file is None:
            raise ValueError('a video is the path or the bytes of an MP4, WebM or GIF file: encode arrays first')
        kind = ('video/mp4' if file[4:8] == b'ftyp' else 'video/webm' if file[:4] == b'\x1a\x45\xdf\xa3' else
                'image/gif' if file[:4] == b'GIF8' else None)
        if kind is None:
            raise ValueError('a video file is an MP4, WebM or GIF file')
        self.file, self.type = file, kind

    def record(self, library: Library, handle: Any, step: int, key: bytes, hidden: Callable[[str], str]) -> None:
        file = ctypes.byref(Bytes(self.file, len(self.file)))
        if self.type == 'image/gif':
            library.image(handle, step, key, file, *_size(self.file))
        else:
            library.audio(handle, step, key, file, self.type.encode())
        if self.caption:
            library.text(handle, step, key + b'/caption', utf8(hidden(str(self.caption))))


class Table(Media):
    """A table.

    Args:
        columns: The titles.
        data: The rows.
        dataframe: A pandas.DataFrame, in place of columns and data.

    Example:
        >>> run.log({"errors": dptrack.Table(columns=["image", "guess"], data=[[3, "cat"]])}, step=100)
    """

    def __init__(self, columns: Sequence[object] | None = None, data: Sequence[Sequence[object]] | None = None, dataframe: Any = None) -> None:
        if dataframe is not None:
            columns, data = list(dataframe.columns), dataframe.values.tolist()
        self.columns, self.data = list(columns or []), [list(row) for row in data or []]

    def add_data(self, *row: object) -> None:
        """Adds a row.

        Args:
            row: Its cells.

        Example:
            >>> table.add_data(4, "dog")
        """
        self.data.append(list(row))

    def record(self, library: Library, handle: Any, step: int, key: bytes, hidden: Callable[[str], str]) -> None:
        width = len(self.columns) or max((len(row) for row in self.data), default=0)
        rows = [self.columns or [str(i) for i in range(width)], *self.data]
        cells = [utf8(hidden(str(cell))) for row in rows for cell in (row + [''] * width)[:width]]
        library.table(handle, step, key, (ctypes.c_char_p * len(cells))(*cells), len(rows), width)


class File:
    """A file of this machine, copied into the run's folder, and to the server if there is one, before log returns.

    Args:
        path: The file.
        name: Its path within the run; default: the file's name.

    Raises:
        FileNotFoundError: There is no such file.

    Example:
        >>> run.log({"model": dptrack.File("model.pt")})
    """

    def __init__(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        self.path = os.fspath(path)
        self.name = name or os.path.basename(self.path)
        if not os.path.isfile(self.path):
            raise FileNotFoundError('there is no file %s' % self.path)

    def wrong_name(self) -> str | None:
        """Reason why the name is invalid, or None."""
        if any(part in ('', '.', '..') for part in self.name.split('/')) or '\\' in self.name or not self.name.isprintable():
            return 'parts divided by single slashes, none of them "." or ".."'
        return None

# SPDX-License-Identifier: Apache-2.0
"""W&B's media by their own arguments, as dptrack's. Arguments that only W&B's page knows (boxes, masks, classes) are left."""
import functools

from dptrack import _media
from wandb import _ignored
from wandb._names import MEDIA


def _careful(made):
    """A constructor that cannot use its arguments says so; the value is then not recorded, and the training continues."""
    @functools.wraps(made)
    def call(self, *arguments, **named):
        self.lost = False
        try:
            made(self, *arguments, **named)
        except Exception as error:
            self.lost = True
            _ignored.ignore('%s(%s)' % (type(self).__name__, ', '.join(type(one).__name__ for one in arguments)),
                            '%s: %s' % (type(error).__name__, error))
    return call


class _Object:
    """The public names of W&B's media that dptrack's do not have say once that they are not recorded."""

    def __getattr__(self, name):
        if name not in MEDIA:
            raise AttributeError('%r object has no attribute %r' % (type(self).__name__, name))
        return _ignored.Nothing('%s.%s' % (type(self).__name__, name))


class Image(_Object, _media.Image):
    """data_or_path: as dptrack.Image's data."""

    @_careful
    def __init__(self, data_or_path, mode=None, caption=None, **left):
        super().__init__(data_or_path, caption=caption)


class Audio(_Object, _media.Audio):
    """data_or_path: as dptrack.Audio's data."""

    @_careful
    def __init__(self, data_or_path, sample_rate=None, caption=None):
        super().__init__(data_or_path, sample_rate=sample_rate, caption=caption)


class Histogram(_Object, _media.Histogram):
    """sequence: the values."""

    @_careful
    def __init__(self, sequence=None, np_histogram=None, num_bins=64):
        super().__init__(sequence, bins=num_bins, np_histogram=np_histogram)


class Table(_Object, _media.Table):
    """rows is an older name of data. A cell that is an image or a sound shows its kind."""

    @_careful
    def __init__(self, columns=None, data=None, rows=None, dataframe=None, **left):
        super().__init__(columns, rows if data is None else data, dataframe=dataframe)

    def add_row(self, *row):
        """An older name of add_data."""
        self.add_data(*row)

    def add_column(self, name, data, optional=False):
        """Adds a column; an empty table gets its rows by it."""
        if not self.data:
            self.data = [[None] * len(self.columns) for _ in data]
        self.columns.append(name)
        for row, cell in zip(self.data, data):
            row.append(cell)

    def get_column(self, name, convert_to=None):
        """The cells of a column, as a list or as numpy's array."""
        at = self.columns.index(name)
        cells = [row[at] for row in self.data]
        if convert_to == 'numpy':
            import numpy
            return numpy.array(cells)
        return cells

    def iterrows(self):
        """Pairs of a row's number and its cells."""
        return enumerate(self.data)

    def get_dataframe(self):
        """The table as pandas.DataFrame."""
        import pandas
        return pandas.DataFrame(self.data, columns=self.columns)


class Html(_Object, _media.Html):
    """data: as dptrack.Html's."""

    @_careful
    def __init__(self, data, inject=True, **left):
        super().__init__(data)


class Plotly(_media.Plotly):
    """val: as dptrack.Plotly's figure."""

    @_careful
    def __init__(self, val):
        super().__init__(val)


class Video(_Object, _media.Video):
    """data_or_path: as dptrack.Video's data."""

    @_careful
    def __init__(self, data_or_path, caption=None, **left):
        super().__init__(data_or_path, caption=caption)

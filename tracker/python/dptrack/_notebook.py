# SPDX-License-Identifier: Apache-2.0
"""How runs and comparisons show themselves in a notebook: HTML without scripts, that follows the notebook's colours."""
from __future__ import annotations

import html
import math
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from dptrack._query import Comparison, RecordedRun
    from dptrack._run import Run

MOST_RUNS = 30
MOST_ROWS = 40
COLOURS = {'running': '#1f6feb', 'finished': '#1a7f37', 'failed': '#cf222e', 'killed': '#9a6700', 'preempted': '#8250df'}


def _cell(value: Any) -> str:
    if value is None:
        return '–'
    if isinstance(value, float):
        text = 'NaN' if math.isnan(value) else '%.6g' % value
    else:
        text = str(value)
    return html.escape(text if len(text) <= 80 else text[:79] + '…')


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already; the first column is a heading of its row."""
    title = ''.join('<th style="text-align:%s">%s</th>' % ('left' if not n else 'right', cell) for n, cell in enumerate(head))
    body = ''.join('<tr>%s</tr>' % ''.join('<td style="text-align:%s">%s</td>' % ('left' if not n else 'right', cell) for n, cell in enumerate(row))
                   for row in rows)
    return '<table>%s<tbody>%s</tbody></table>' % ('<thead><tr>%s</tr></thead>' % title if head else '', body)


def _status(word: str) -> str:
    return '<span style="color:%s">●</span> %s' % (COLOURS.get(word, '#6e7781'), html.escape(word))


def _link(address: str | None, text: str, folder: str = '') -> str:
    """A link to the page, or how to open it."""
    if address:
        return '<a href="%s" target="_blank" rel="noopener">%s</a>' % (html.escape(address), html.escape(text))
    return 'page: <code>dptrack serve%s</code>' % (' --logdir ' + html.escape(folder) if folder not in ('', 'runs') else '')


def _rest(n: int, what: str) -> str:
    return '<div>and %d more %s</div>' % (n, what) if n > 0 else ''


def _details(title: str, pairs: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    if not pairs:
        return ''
    return '<details%s><summary>%s (%d)</summary>%s%s</details>' % (' open' if len(pairs) <= 12 else '', title, len(pairs),
                                                                   _table(head, pairs[:MOST_ROWS]), _rest(len(pairs) - MOST_ROWS, 'rows'))


def _own(key: str) -> bool:
    """Keys that a reader looks for first."""
    return not key.startswith(('system/', 'phase/', 'dptrack/'))


def _head(name: str | None, experiment: str, status: str, link: str) -> str:
    return '<div><b>%s</b> in %s · %s · %s</div>' % (html.escape(name or 'a run that is not recorded'), html.escape(experiment), _status(status), link)


def of_active(run: Run) -> str:
    """HTML of a run that this program records."""
    from dptrack import _query, _values
    folder = os.path.dirname(os.path.dirname(run.dir)) if run.dir else ''
    url = run._options.get('url')
    page = url.decode() if url else os.environ.get('DPTRACK_URL') or (_query._serving(folder) if folder else None)
    status = {'open': 'running', 'waiting': 'running', 'closed': 'finished'}.get(run._state, 'not recorded')
    params = [(_cell(key), _cell(_values.plain(value))) for key, value in _values.flatten(run.config.as_dict(), '.')]
    metrics = [(_cell(key), _cell(value)) for key, value in run.summary.items()]
    return '<div class="dptrack-run">%s%s%s</div>' % (
        _head(run.name, run.experiment, status, _link('%s/?r=%s' % (page.rstrip('/'), run.id) if page and run.id else None, 'Open page', folder)),
        _details('Params', params), _details('Newest values', metrics))


def of_recorded(run: RecordedRun) -> str:
    """HTML of a run as it is stored."""
    keys = sorted(run.metrics, key=lambda key: (not _own(key), key))
    metrics = [(_cell(key), *(_cell(run.metrics[key].get(which)) for which in ('last', 'min', 'max'))) for key in keys]
    folder = getattr(run._source, 'runs_dir', '')
    return '<div class="dptrack-run">%s%s%s%s</div>' % (
        _head(run.name, run.experiment, run.status, _link(run.url, 'Open page', folder)),
        _details('Metrics', metrics, ('', 'last', 'min', 'max')),
        _details('Params', [(_cell(key), _cell(value)) for key, value in sorted(run.params.items())]),
        _details('Tags', [(_cell(key), _cell(value)) for key, value in sorted(run.tags.items())]))


def of_comparison(comparison: Comparison) -> str:
    """HTML of runs next to each other: one column a run."""
    runs = comparison.runs[:MOST_RUNS]
    if not runs:
        return '<div class="dptrack-runs">no runs</div>'
    address, folder = comparison.url, getattr(runs[0]._source, 'runs_dir', '')
    page = runs[0]._source.page()
    names = [_link('%s/?r=%s' % (page, run.id), run.name) if page else html.escape(run.name) for run in runs]
    rows: list[Sequence[str]] = [('status', *(_status(run.status) for run in runs))]
    rows += [('params.' + _cell(key), *(_cell(value) for value in values[:MOST_RUNS])) for key, values in comparison.params.items()]
    keys = sorted(comparison.metrics, key=lambda key: (not _own(key), key))
    rows += [(_cell(key), *(_cell(sums.get('last') if sums else None) for sums in comparison.metrics[key][:MOST_RUNS])) for key in keys]
    return '<div class="dptrack-runs"><div>%d runs · %s</div>%s%s%s</div>' % (
        len(comparison.runs), _link(address, 'Compare on the page', folder), _table(('', *names), rows[:MOST_ROWS]),
        _rest(len(rows) - MOST_ROWS, 'rows'), _rest(len(comparison.runs) - MOST_RUNS, 'runs'))

# SPDX-License-Identifier: Apache-2.0
"""The tools of dptrack.mcp: questions about runs and changes of them. Each asks the REST API and answers with sentences and lines for
a model. An empty result is a sentence, so that a model does not take it for a failure. What runs are called and say stays within its
line and cell (one_line, cell): a name cannot forge a line."""
from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

from dptrack._query import BEST_TAG, Refused, best_of
from dptrack._run import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from dptrack._query import _Server

COUNT_MAX, ANSWER_MAX = 1000, 1 << 22
LIST_DEFAULT, SERIES_DEFAULT, METRICS_SHOWN, KEYS_SHOWN, ROWS_SHOWN, RUNS_MAX = 20, 50, 6, 40, 60, 50
_OF_MECHANISM = ('system/', 'phase/', 'dptrack/')
_UNSEEN = frozenset(('Cc', 'Cf', 'Cs', 'Zl', 'Zp'))  # controls, directions and other characters without a shape, separators


# ---- texts ----

def one_line(text: Any) -> str:
    """The text without line breaks and characters that are not seen, and without two blanks in a row, which separate fields."""
    return ' '.join(''.join(' ' if unicodedata.category(c) in _UNSEEN else c for c in str(text)).split())


def cell(text: Any) -> str:
    """A cell of a table in Markdown."""
    return one_line(text).replace('\\', '\\\\').replace('|', '\\|')


def number(value: Any) -> str:
    """Five significant digits, the word of a number that is not finite, or a dash."""
    if value is None or isinstance(value, str):
        return value or '-'
    return '%.0f' % value if value == int(value) and abs(value) < 1e9 else '%.5g' % value


def moment(ms: Any) -> str:
    from datetime import datetime, timezone
    try:
        return datetime.fromtimestamp(ms // 1000, timezone.utc).strftime('%Y-%m-%d %H:%M:%SZ') if ms and ms > 0 else '-'
    except (OverflowError, OSError, ValueError):
        return '-'


def head(run: dict[str, Any]) -> str:
    return '%s (%s' % (one_line(run['name']), run['id'][:8])


def status(run: dict[str, Any]) -> str:
    """The status, and the first alerts of the server: "failed after step 267" includes it."""
    alerts = run.get('alerts', [])[:3]
    words = [('%s: ' % one_line(a['key']) if a['key'] else '') + one_line(a['text']) for a in alerts]
    return ', '.join(words if alerts and alerts[0]['kind'] == 'failed' else [run['status'], *words])


def main_metrics(keys: Iterable[str]) -> list[str]:
    """Metrics that a reader looks for first."""
    return [key for key in keys if not key.startswith(_OF_MECHANISM)]


def listed(key: str) -> str:
    """A key within a list with commas and blanks."""
    return one_line(key) if re.fullmatch('[^\\s,"]+', key) else '"%s"' % one_line(key).replace('"', "'")


# ---- runs ----

def find(server: _Server, text: str) -> str:
    """The id of the run with this id, prefix of one (at least four digits), or name."""
    if re.fullmatch('[0-9a-f]{4,32}', text):
        try:
            return str(server.ask('runs/' + text)['id'])
        except Refused as error:
            if error.status != 404:
                raise
    found = server.ask('runs', {'filter': "attributes.run_name = '%s'" % text.replace("'", "''"), 'limit': 2})['runs']
    if len(found) > 1:
        raise Error('more than one run has the name %s: use its id (see list_runs)' % text)
    if not found:
        raise Error('no run %s: use an id, the first digits of one, or a name' % text)
    return str(found[0]['id'])


def find_several(server: _Server, runs: list[str]) -> list[str]:
    if not 2 <= len(runs) <= RUNS_MAX:
        raise Error('runs: expected 2 to %d ids or names' % RUNS_MAX)
    return [find(server, text) for text in runs]


def query(experiment: str | None, filter: str | None, **others: Any) -> dict[str, Any]:
    """The arguments that are given."""
    return {name: value for name, value in dict(others, experiment=experiment, filter=filter).items() if value is not None}


def no_runs(experiment: str | None, filter: str | None) -> str:
    if experiment is None and filter is None:
        return 'No runs are recorded yet.'
    return 'No runs%s%s.' % (' in experiment ' + one_line(experiment) if experiment else '', ' match ' + one_line(filter) if filter else '')


# ---- tools ----

def list_runs(server: _Server, experiment: str | None = None, filter: str | None = None, order_by: str | None = None,
              limit: int = LIST_DEFAULT) -> str:
    reply = server.ask('runs', query(experiment, filter, order_by=order_by, limit=limit))
    lines = []
    for run in reply['runs']:
        keys = main_metrics(run['metrics'])
        shown = ', '.join('%s %s' % (listed(key), number(run['metrics'][key]['last'])) for key in keys[:METRICS_SHOWN])
        more = ', and %d more metrics' % (len(keys) - METRICS_SHOWN) if len(keys) > METRICS_SHOWN else ''
        step = run.get('last_step')
        fields = [run['id'][:8], one_line(run['name']), 'experiment ' + one_line(run['experiment']), status(run)]
        lines.append('  '.join([*fields, *(['step %d' % step] if step is not None and step >= 0 else []), *([shown + more] if shown else [])]))
    if reply.get('next_page_token'):
        lines.append('More runs match: raise limit, or narrow them down with experiment or filter.')
    return '\n'.join(lines) + '\n' if lines else no_runs(experiment, filter)


def settle_goal(server: _Server, newest: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """The metric by which the server judges these runs, and which of its values is best."""
    compared = server.ask('compare', method='POST', body={'runs': [run['id'] for run in newest]})
    return compared['goal'], next((m['best'] for m in compared['metrics'] if m['key'] == compared['goal']), None)


def said_best(server: _Server, key: str, experiment: str | None, filter: str | None) -> str | None:
    """Which value is best, as the newest run says that says anything of the metric, else by its name."""
    said = "tags.\"%s%s\" LIKE 'm%%'" % (BEST_TAG, key)
    found = server.ask('runs', query(experiment, '(%s) AND %s' % (filter, said) if filter else said, limit=1, metrics=key))['runs']
    return best_of(key, found[0]['tags'].get(BEST_TAG + key) if found else None)


def best_run(server: _Server, experiment: str | None = None, key: str | None = None, direction: str | None = None,
             filter: str | None = None) -> str:
    if direction not in (None, 'max', 'min'):
        raise Error('direction %s: expected max or min' % direction)
    best = None
    if key is None:
        newest = server.ask('runs', query(experiment, filter, limit=RUNS_MAX, metrics=''))['runs']
        if not newest:
            return no_runs(experiment, filter)
        key, best = settle_goal(server, newest)
        if key is None:
            return 'The newest runs have no metrics.'
    elif '"' in key:
        raise Error('key %s: a quote is not supported here' % key)
    elif direction is None:
        best = said_best(server, key, experiment, filter)
    best = direction or best
    order = 'metrics."%s".%s %s' % (key, best or 'last', 'DESC' if best == 'max' else 'ASC')
    found = [run for run in server.ask('runs', query(experiment, filter, order_by=order, limit=2, metrics=key))['runs'] if key in run['metrics']]
    if not found:
        return 'No run has the metric %s.' % one_line(key)
    if best is None:
        return 'Whether a high or a low %s is better is unknown: set direction.' % one_line(key)
    values = [number(run['metrics'][key][best]) for run in found]
    lines = ['%s, experiment %s, %s) is best: its %s %s is %s.' % (head(found[0]), one_line(found[0]['experiment']), found[0]['status'],
             'largest' if best == 'max' else 'smallest', one_line(key), values[0])]
    lines += ['Next: %s) with %s.' % (head(run), value) for run, value in zip(found[1:], values[1:])]
    lines += ['Params:%s' % ('' if found[0]['params'] else ' none.')]
    lines += ['- %s=%s' % (one_line(name), one_line(value)) for name, value in found[0]['params'].items()]
    return '\n'.join(lines) + '\n'


def why(server: _Server, runs: list[str]) -> str:
    reply = b''.join(server.lines('compare/why.md', [('run', id) for id in find_several(server, runs)])).decode('utf-8', 'replace')
    return '\n'.join(one_line(line) for line in reply.split('\n'))


def compare_runs(server: _Server, runs: list[str]) -> str:
    reply = server.ask('compare', method='POST', body={'runs': find_several(server, runs)})
    keys = set(main_metrics(metric['key'] for metric in reply['metrics']))
    metrics = [metric for metric in reply['metrics'] if metric['key'] in keys]
    rows = [['', *('%s)' % head(run) for run in reply['runs'])], ['status', *map(status, reply['runs'])]]
    rows += [[param['key'], *('-' if value is None else value for value in param['values'])] for param in reply['params'] if param['differs']]
    rows += [[metric['key'], *map(number, metric['last'])] for metric in metrics[:ROWS_SHOWN]]
    lines = ['| %s |' % ' | '.join(map(cell, row)) for row in rows]
    lines.insert(1, '|---' * len(rows[0]) + '|')
    if len(metrics) > ROWS_SHOWN:
        lines.append('%d more metrics' % (len(metrics) - ROWS_SHOWN))
    return '\n'.join([*lines, 'Params that are equal are left out; metrics are the last values.', ''])


def get_series(server: _Server, run: str, key: str, points: int = SERIES_DEFAULT) -> str:
    id = find(server, run)
    found = server.ask('series', {'run': id, 'rank': -1, 'buckets': points, 'key': key})['series']
    if not found:
        known = server.ask('runs/' + id)
        keys = ', '.join(map(listed, main_metrics(known['metrics'])[:KEYS_SHOWN]))
        return 'Run %s has no series %s. It has: %s.\n' % (one_line(known['name']), one_line(key), keys or 'none yet')
    buckets = found[0]['buckets']
    rows = zip(buckets['x_last'], *(map(number, buckets[field]) for field in ('last', 'min', 'max')))
    return '%d points; each line is a range of steps: its last step, last value, smallest and largest:\n' % found[0]['count'] + ''.join(
        '%.15g %s %s %s\n' % row for row in rows)


def diagnose(server: _Server, run: str) -> str:
    reply = server.ask('runs/%s/diagnosis' % find(server, run))
    lines = [one_line(reply['sentence']) if reply['verdict'] else 'The run cannot be diagnosed: %s.' % one_line(reply['problem'])]
    lines += ['- %s Found: %s. Usual: %s. Next: %s.' % tuple(one_line(leaf[field]) for field in ('sentence', 'evidence', 'usual', 'action'))
              for leaf in reply['leaves']]
    if reply['verdict'] and reply['bound']:
        lines.append('The rest is bound by %s.' % one_line(reply['bound']))
    if reply.get('overfitting'):
        lines.append(one_line(reply['overfitting']['sentence']))
    return '\n'.join(lines) + '\n'


def list_alerts(server: _Server, experiment: str | None = None, run: str | None = None, limit: int = LIST_DEFAULT) -> str:
    if run is not None:
        sent = server.ask('runs/%s/alerts' % find(server, run))['alerts']
        lines = ['%s  %s at step %d: %s' % (moment(a['time']), one_line(a['level']), a['step'], one_line(a['title']))
                 + (': ' + one_line(a['text']) if a.get('text') else '') for a in sent]
        return '\n'.join(lines) + '\n' if lines else 'Run %s has sent no alerts.' % one_line(run)
    found = server.ask('alerts', query(experiment, None, limit=limit))['alerts']
    lines = ['%s  %s (%s, experiment %s): %s' % (moment(a['time']), one_line(a['run_name']), a['run'][:8], one_line(a['experiment']),
             one_line(a['text'])) for a in found]
    return '\n'.join(lines) + '\n' if lines else 'No rule has found anything%s.' % (' in experiment ' + one_line(experiment) if experiment else '')


def add_note(server: _Server, run: str, text: str) -> str:
    id = find(server, run)
    before = server.ask('runs/' + id).get('notes') or ''
    changed = server.ask('runs/' + id, method='PATCH', body={'notes': before + '\n\n' + text if before else text})
    return 'Run %s): the text is at the end of its note.' % head(changed)


def set_tag(server: _Server, run: str, key: str, value: str = '') -> str:
    changed = server.ask('runs/%s/tags/%s' % (find(server, run), quote(key, safe='')), method='PUT', body={'value': value})
    return 'Run %s): the tag is set.' % head(changed)


def archive_run(server: _Server, run: str) -> str:
    changed = server.ask('runs/' + find(server, run), method='DELETE')
    return 'Run %s): it is archived; dptrack restore brings it back until dptrack gc removes it.' % head(changed)


# ---- their list ----

TEXT: dict[str, Any] = {'type': 'string'}
COUNT: dict[str, Any] = {'type': 'integer', 'minimum': 1, 'maximum': COUNT_MAX}
LIST: dict[str, Any] = {'type': 'array', 'items': {'type': 'string'}}


class Argument:
    """An argument of a tool: its schema and what it is. A tool refuses to run without one that is required."""

    def __init__(self, name: str, kind: dict[str, Any], help: str, required: bool = False) -> None:
        self.name, self.kind, self.help, self.required = name, kind, help, required

    def check(self, value: Any) -> None:
        if self.kind is COUNT:
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= COUNT_MAX:
                raise Error('%s: expected a whole number from 1 to %d' % (self.name, COUNT_MAX))
        elif self.kind is TEXT:
            if not isinstance(value, str):
                raise Error('%s: expected a string' % self.name)
        elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Error('%s: expected a list of strings' % self.name)


class Tool:
    """A function that answers. writes: it changes runs, which needs --write."""

    def __init__(self, run: Callable[..., str], summary: str, arguments: tuple[Argument, ...], writes: bool = False) -> None:
        self.name, self.run, self.summary, self.arguments, self.writes = run.__name__, run, summary, arguments, writes

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return {'type': 'object', 'properties': {a.name: dict(a.kind, description=a.help) for a in self.arguments},
                'required': [a.name for a in self.arguments if a.required], 'additionalProperties': False}

    def call(self, server: _Server, given: dict[str, Any]) -> str:
        """The answer; Error says in one line what is wrong. An argument that is None is absent."""
        values = {name: value for name, value in given.items() if value is not None}
        known = {a.name: a for a in self.arguments}
        for name, value in values.items():
            if name not in known:
                raise Error('%s: unknown argument %s: expected %s' % (self.name, name, ', '.join(known)))
            known[name].check(value)
        for a in self.arguments:
            if a.required and a.name not in values:
                raise Error('%s: the argument %s is missing: %s' % (self.name, a.name, a.help))
        answer = self.run(server, **values)
        if len(answer) > ANSWER_MAX:
            raise Error('%s: the result is too long: request less' % self.name)
        return answer


_RUN = Argument('run', TEXT, 'id of the run, its first digits (at least 4), or its name', True)
_RUNS = Argument('runs', LIST, 'ids (the first digits suffice) or names of 2 to 50 runs, in order', True)
_EXPERIMENT = Argument('experiment', TEXT, 'name of an experiment (default: all)')
_LIMIT = Argument('limit', COUNT, 'largest number of results, 1 to 1000 (default: 20)')
_FILTER = Argument('filter', TEXT, "a condition, such as: metrics.\"train/loss\".last < 1 AND params.lr = 0.1 AND status = 'finished'")

TOOLS = {tool.name: tool for tool in (
    Tool(list_runs, 'Lists training runs with their status and newest values, newest first unless ordered.',
         (_EXPERIMENT, _FILTER, Argument('order_by', TEXT, 'keys with ASC or DESC, such as: metrics."epoch/top1".max DESC'), _LIMIT)),
    Tool(best_run, 'Names the run with the best value of a metric, and its params.',
         (_EXPERIMENT, Argument('key', TEXT, 'the metric (default: accuracy or loss, as recorded)'),
          Argument('direction', TEXT, 'max or min (default: what the runs say, else by the name)'), _FILTER)),
    Tool(why, 'Explains the speedup from run to run: the factor, its interval, and the phases that changed.', (_RUNS,)),
    Tool(compare_runs, 'Compares runs: the params that differ, and the metrics.', (_RUNS,)),
    Tool(get_series, 'Reads a metric of a run over its steps.',
         (_RUN, Argument('key', TEXT, 'the metric, such as train/loss', True),
          Argument('points', COUNT, 'largest number of lines, 1 to 1000 (default: 50)'))),
    Tool(diagnose, 'Says what limits the speed of a run, with evidence and the next action.', (_RUN,)),
    Tool(list_alerts, 'Lists what alert rules found, newest first; with a run the alerts that its program sent.',
         (_EXPERIMENT, Argument('run', TEXT, 'id or name of a run (default: none)'), _LIMIT)),
    Tool(add_note, 'Appends a text to the note of a run.', (_RUN, Argument('text', TEXT, 'the text, in Markdown', True)), True),
    Tool(set_tag, 'Sets a tag of a run.',
         (_RUN, Argument('key', TEXT, 'name of the tag', True), Argument('value', TEXT, 'its value (default: empty)')), True),
    Tool(archive_run, 'Hides a run from lists. It can be restored.', (_RUN,), True),
)}

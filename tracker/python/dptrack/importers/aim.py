# SPDX-License-Identifier: Apache-2.0
"""Reads Aim's runs with its SDK: metrics with their contexts, params, tags, images, audio, texts, distributions, logs, artifacts."""
from __future__ import annotations

import os

import aim
from aim.sdk.repo import ContainerConfig, RocksUnionContainer
from aim.storage.context import Context

from dptrack.importers import Refused, flat, local_path, run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from dptrack.importers import RunWriter

SYSTEM = '__system__'


def open_repository(path: str) -> Any:
    """Opens the repository without its index, which may be older than the runs and must not be rewritten."""
    if os.path.basename(os.path.normpath(path)) == '.aim':
        path = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(os.path.join(path, '.aim')):
        raise Refused('%s: not an Aim repository: expected a folder .aim' % path)
    repo = aim.Repo(path)
    whole = RocksUnionContainer(os.path.join(repo.path, 'meta'), read_only=True)
    repo.container_pool[ContainerConfig('meta', None, True)] = whole
    return repo, whole  # the pool has only a weak reference


def key_of(name: str, context: Any) -> Any:
    """Series key of a metric in a context: SUBSET/NAME{OTHER=VALUE, ...}."""
    if name.startswith(SYSTEM):
        name = 'system/' + name[len(SYSTEM):]
    rest = {k: v for k, v in sorted(context.items()) if k != 'subset'}
    suffix = '{%s}' % ', '.join('%s=%s' % pair for pair in rest.items()) if rest else ''
    return ('%s/' % context['subset'] if 'subset' in context else '') + name + suffix


def whole_step(out: RunWriter, key: str, step: int) -> Any:
    if int(step) != step:
        out.left_out('the fractional part of the steps of %s' % key)
    return int(step)


def write_metrics(out: RunWriter, run: Any) -> None:
    taken: dict[Any, Any] = {}
    # run.metrics() has none of an archived run
    found = run.collect_sequence_info(sequence_types=('metric',)).get('metric') or ()
    for metric in (run.get_metric(known['name'], Context(known['context'])) for known in found):
        key = key_of(metric.name, metric.context.to_dict())
        if taken.setdefault(key, metric) is not metric:
            key += ' (%s)' % metric.name
        steps, (values, epochs, times) = metric.data.items_list()
        for step, value, at in zip(steps, values, times):
            out.point(key, whole_step(out, key, step), at, value)
        if any(epoch is not None and epoch == epoch for epoch in epochs):
            out.left_out('the epochs of the points of %s' % key)


def write_object(out: RunWriter, key: str, step: int, at: Any, value: Any) -> None:
    """Writes one of Aim's media objects, by its class."""
    if isinstance(value, aim.Image):
        out.image(key, step, at, bytes(value.storage['data']), (value.width, value.height))
    elif isinstance(value, aim.Audio):
        data = bytes(value.storage['data'])
        out.media('audio', key, step, at, {'file': out.keep(data), 'type': 'audio/wav'})
    elif isinstance(value, aim.Text):
        out.media('text', key, step, at, {'text': value.data})
    elif isinstance(value, aim.Distribution):
        counts, edges = value.to_np_histogram()
        out.media('histogram', key, step, at, {'values': counts.tolist(), 'bins': edges.tolist()})
    else:
        out.left_out('%s of Aim: %s' % (type(value).__name__, key))
        return
    caption = getattr(value, 'caption', None)
    if caption:
        out.media('text', key + '/caption', step, at, {'text': caption})


def write_objects(out: RunWriter, run: Any) -> None:
    getters = {'images': run.get_image_sequence, 'audios': run.get_audio_sequence, 'texts': run.get_text_sequence,
               'distributions': run.get_distribution_sequence, 'figures': run.get_figure_sequence}
    found = run.collect_sequence_info(sequence_types=tuple(getters))
    for kind, get in getters.items():
        for known in found.get(kind) or ():
            write_sequence(out, key_of(known['name'], known['context']), get(known['name'], Context(known['context'])))


def write_sequence(out: RunWriter, key: str, sequence: Any) -> None:
    steps, (values, _, times) = sequence.data.items_list()
    for step, value, at in zip(steps, values, times):
        step = whole_step(out, key, step)
        if isinstance(value, (list, tuple)):
            for n, one in enumerate(value):
                write_object(out, '%s/%d' % (key, n), step, at, one)
        else:
            write_object(out, key, step, at, value)


def write_logs(out: RunWriter, run: Any) -> None:
    logs = run.get_terminal_logs()
    if logs:
        _, (values, _, times) = logs.data.items_list()
        for line, at in zip(values, times):
            out.console(1, at, line.data.rstrip('\r\n'))
    records = run.get_log_records()
    if records:
        _, (values, _, times) = records.data.items_list()
        for record, at in zip(values, times):
            out.console(2, at, str(record.message))


def write_files(out: RunWriter, run: Any) -> None:
    for artifact in (run.artifacts or {}).values():
        path = local_path(artifact.uri)
        if path is None:
            out.left_out('an artifact in remote storage: %s' % artifact.uri)
        elif not os.path.exists(path):
            out.left_out('an artifact that is not on this machine: %s' % path)
        else:
            out.file(artifact.name, path)


def write_system(out: RunWriter, known: Any) -> None:
    """Writes what Aim recorded about the program, except environment variables, which may hold secrets."""
    packages, git = known.get('packages') or {}, known.get('git_info') or {}
    if packages:
        out.code('packages', '\n'.join(sorted('%s==%s' % pair for pair in packages.items())))
    for name, value in (('branch', git.get('branch')), ('remote', git.get('remote_origin_url')),
                        ('commit', (git.get('commit') or {}).get('hash'))):
        if value:
            out.code(name, str(value))
    words = known.get('arguments')
    if words:
        from dptrack import _secrets
        scrubber = _secrets.Scrubber(_secrets.of_arguments(words))
        out.environment('command', scrubber.text(' '.join([known.get('executable') or 'python', *words])))
    if known.get('env_variables'):
        out.left_out("a run's environment variables, which may hold secrets")


def write_run(out: RunWriter, run: Any) -> None:
    out.run(run_id('aim', run.hash), run.experiment, run.name, run.creation_time)
    known = run.get(..., {}, resolve_objects=False) or {}
    write_system(out, known.pop('__system_params', None) or {})
    for key, value in flat(known):
        out.param(key, value)
    out.tag('aim.run_hash', run.hash)
    for word in run.tags:
        out.tag(word)
    if run.archived:
        out.tag('aim.archived', 'true')
    if run.description:
        out.note(run.description)
    write_metrics(out, run)
    write_objects(out, run)
    write_logs(out, run)
    write_files(out, run)
    out.end('running' if run.active else 'finished', run.end_time or run.creation_time)


def write_runs(out: RunWriter, options: argparse.Namespace) -> None:
    repo, whole = open_repository(options.source)
    for name in sorted(repo.list_all_runs()):
        with out.one_run(name):
            write_run(out, aim.Run(name, repo=repo, read_only=True))
    del whole

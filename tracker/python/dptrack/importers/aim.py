"""Aim's runs, by its own SDK: metrics with their contexts, params, tags, images, audio, texts, distributions, logs, artifacts."""
import os

import aim
from aim.sdk.repo import ContainerConfig, RocksUnionContainer
from aim.storage.context import Context

from dptrack.bring import Refused, flat, local_path, run_id

SYSTEM = '__system__'


def open_repository(path):
    """Aim's repository, read from the runs' own parts: its index may be behind them, and is not ours to renew."""
    if os.path.basename(os.path.normpath(path)) == '.aim':
        path = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(os.path.join(path, '.aim')):
        raise Refused('%s holds no repository of Aim (a folder .aim)' % path)
    repo = aim.Repo(path)
    whole = RocksUnionContainer(os.path.join(repo.path, 'meta'), read_only=True)
    repo.container_pool[ContainerConfig('meta', None, True)] = whole
    return repo, whole  # the pool holds it weakly


def key_of(name, context):
    """One key for a name in a context: subset in front, as people write it elsewhere, the rest behind."""
    if name.startswith(SYSTEM):
        name = 'system/' + name[len(SYSTEM):]
    rest = {k: v for k, v in sorted(context.items()) if k != 'subset'}
    behind = '{%s}' % ', '.join('%s=%s' % pair for pair in rest.items()) if rest else ''
    return ('%s/' % context['subset'] if 'subset' in context else '') + name + behind


def whole_step(told, key, step):
    if int(step) != step:
        told.left_out('the fraction of a step of %s' % key)
    return int(step)


def tell_metrics(told, run):
    taken = {}
    for metric in run.metrics():
        key = key_of(metric.name, metric.context.to_dict())
        if taken.setdefault(key, metric) is not metric:
            key += ' (%s)' % metric.name
        steps, (values, epochs, times) = metric.data.items_list()
        for step, value, at in zip(steps, values, times):
            told.point(key, whole_step(told, key, step), at, value)
        if any(epoch is not None and epoch == epoch for epoch in epochs):
            told.left_out('the epochs beside the points of %s' % key)


def tell_object(told, key, step, at, value):
    """One of Aim's objects: it is known by its class."""
    if isinstance(value, aim.Image):
        told.image(key, step, at, bytes(value.storage['data']), (value.width, value.height))
    elif isinstance(value, aim.Audio):
        data = bytes(value.storage['data'])
        told.media('audio', key, step, at, {'file': told.keep(data), 'type': 'audio/wav'})
    elif isinstance(value, aim.Text):
        told.media('text', key, step, at, {'text': value.data})
    elif isinstance(value, aim.Distribution):
        counts, edges = value.to_np_histogram()
        told.media('histogram', key, step, at, {'values': counts.tolist(), 'bins': edges.tolist()})
    else:
        told.left_out('%s of Aim: %s' % (type(value).__name__, key))
        return
    caption = getattr(value, 'caption', None)
    if caption:
        told.media('text', key + '/caption', step, at, {'text': caption})


def tell_objects(told, run):
    getters = {'images': run.get_image_sequence, 'audios': run.get_audio_sequence, 'texts': run.get_text_sequence,
               'distributions': run.get_distribution_sequence, 'figures': run.get_figure_sequence}
    found = run.collect_sequence_info(sequence_types=tuple(getters))
    for kind, get in getters.items():
        for known in found.get(kind) or ():
            tell_sequence(told, key_of(known['name'], known['context']), get(known['name'], Context(known['context'])))


def tell_sequence(told, key, sequence):
    steps, (values, _, times) = sequence.data.items_list()
    for step, value, at in zip(steps, values, times):
        step = whole_step(told, key, step)
        if isinstance(value, (list, tuple)):
            for n, one in enumerate(value):
                tell_object(told, '%s/%d' % (key, n), step, at, one)
        else:
            tell_object(told, key, step, at, value)


def tell_logs(told, run):
    logs = run.get_terminal_logs()
    if logs:
        _, (values, _, times) = logs.data.items_list()
        for line, at in zip(values, times):
            told.console(1, at, line.data.rstrip('\r\n'))
    records = run.get_log_records()
    if records:
        _, (values, _, times) = records.data.items_list()
        for record, at in zip(values, times):
            told.console(2, at, str(record.message))


def tell_files(told, run):
    for artifact in (run.artifacts or {}).values():
        path = local_path(artifact.uri)
        if path is None:
            told.left_out('an artifact that lies elsewhere: %s' % artifact.uri)
        elif not os.path.exists(path):
            told.left_out('an artifact that is not on this machine: %s' % path)
        else:
            told.file(artifact.name, path)


def tell_system(told, known):
    """What Aim keeps of the program. Environment variables hold secrets: they stay where they are."""
    packages, git = known.get('packages') or {}, known.get('git_info') or {}
    if packages:
        told.code('packages', '\n'.join(sorted('%s==%s' % pair for pair in packages.items())))
    for name, value in (('branch', git.get('branch')), ('remote', git.get('remote_origin_url')),
                        ('commit', (git.get('commit') or {}).get('hash'))):
        if value:
            told.code(name, str(value))
    words = known.get('arguments')
    if words:
        from dptrack import _secrets
        scrubber = _secrets.Scrubber(_secrets.of_arguments(words))
        told.environment('command', scrubber.text(' '.join([known.get('executable') or 'python', *words])))
    if known.get('env_variables'):
        told.left_out("a run's environment variables, which may hold secrets")


def tell_run(told, run):
    told.run(run_id('aim', run.hash), run.experiment, run.name, run.creation_time)
    known = run.get(..., {}, resolve_objects=False) or {}
    tell_system(told, known.pop('__system_params', None) or {})
    for key, value in flat(known):
        told.param(key, value)
    told.tag('aim.run_hash', run.hash)
    for word in run.tags:
        told.tag(word)
    if run.archived:
        told.tag('aim.archived', 'true')
    if run.description:
        told.note(run.description)
    tell_metrics(told, run)
    tell_objects(told, run)
    tell_logs(told, run)
    tell_files(told, run)
    told.end('running' if run.active else 'finished', run.end_time or run.creation_time)


def tell(told, options):
    repo, whole = open_repository(options.source)
    for name in sorted(repo.list_all_runs()):
        with told.one_run(name):
            tell_run(told, aim.Run(name, repo=repo, read_only=True))
    del whole

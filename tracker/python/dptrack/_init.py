# SPDX-License-Identifier: Apache-2.0
"""Options of init, decided before a run is opened: names, folder, ranks of the job, and whether it resumes an older run."""
from __future__ import annotations

import os
import sys

from dptrack import _atexit, _job
from dptrack._run import Error, Run, active, library, utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dptrack._run import ConfigLike, TagsLike

SYSTEM_S = 5.0
SYSTEM_LEAST_S = 0.1  # the minimum of dptrack_system


def given(**options: Any) -> dict[str, Any]:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def of_trainer(mine: Run | None, options: dict[str, Any], again: bool = True) -> Run:
    """The run of a trainer's callback at the start of a training: the active one, or a new one. A run that a callback started
    is finished first, if another training begins: `again`, or another callback (its own run is `mine`) with another run_name."""
    import dptrack
    run = active()
    if run is not None and run._of_trainer and (again or (run is not mine and options.get('run_name') not in (None, run.name))):
        run.finish()
        run = active()
    if run is None:
        run = dptrack.init(**options)
        run._of_trainer = True
    return run


def begin(make: Callable[[int, int], Run], experiment: str | None = None, run_name: str | None = None, config: ConfigLike = None,
          tags: TagsLike = None, runs_dir: str | os.PathLike[str] | None = None, notes: str | None = None, run_id: str | None = None,
          resume: bool | str | None = None, first_step: int | None = None, rank: int | None = None, world_size: int | None = None,
          url: str | None = None, mode: str | None = None, project: str | None = None, name: str | None = None,
          console: bool | None = None, code: bool | None = None, system: float | str | None = None) -> Run:
    """Returns a run of class make, open or waiting for its first step. dptrack.init describes the options."""
    context = _job.find_rank()
    if rank is not None or world_size is not None:
        context = _job.given_rank(context, rank or 0, world_size or 1, run_id)
    run = make(context.rank, context.world_size)
    run._scrubber.add(_secrets(config))
    experiment = experiment or project or os.environ.get('DPTRACK_EXPERIMENT') or 'default'
    run.experiment = experiment
    mode = mode or os.environ.get('DPTRACK_MODE') or 'online'
    if mode not in ('online', 'disabled'):
        raise Error('mode (DPTRACK_MODE) is %r: expected "disabled" to record nothing, or "online"' % mode)
    if mode == 'disabled' or _main_again():
        run.config.update(config or {})
        return run
    if not 0 <= run.rank < run.world_size:
        raise Error('rank %d of %d is out of range: expected 0 to %d; see rank and world_size, or RANK and WORLD_SIZE' %
                    (run.rank, run.world_size, max(run.world_size - 1, 0)))
    _tag_pairs(tags)
    library()
    options: dict[str, Any] = {'experiment': _bytes(experiment), 'run_name': _bytes(run_name or name), 'rank': context.rank,
               'runs_dir': os.fsencode(runs_dir or os.environ.get('DPTRACK_RUNS_DIR') or 'runs'),
               'world_size': context.world_size, 'url': _bytes(url)}
    if first_step is not None:
        options['first_step'] = int(first_step)
    run._system_s = _seconds(system)
    _atexit.watch(run)
    try:
        _join(run, context, options, run_id, resume)
    except BaseException:
        _atexit.forget(run)
        raise
    _record_setup(run, config, tags, notes)
    if _is_on(console, 'DPTRACK_CONSOLE'):
        from dptrack import _console
        _console.add(run)
    if run.rank == 0 and _is_on(code, 'DPTRACK_CODE'):
        from dptrack import _environment
        for part, text in _environment.collect_code().items():
            run.code(part, text)
    return run


def _is_on(asked: bool | None, variable: str) -> bool:
    return os.environ.get(variable, '1') not in ('0', 'off', 'false') if asked is None else asked


def _seconds(asked: float | str | None) -> float:
    """Sampling interval of system metrics in seconds."""
    given = os.environ.get('DPTRACK_SYSTEM', SYSTEM_S) if asked is None else asked
    try:
        seconds = 0.0 if given is False or given in ('off', 'false') else SYSTEM_S if given is True else float(given)
    except (TypeError, ValueError):
        seconds = -1.0
    if not (seconds == 0 or seconds >= SYSTEM_LEAST_S):
        raise Error('system (DPTRACK_SYSTEM) is %r: expected seconds, at least %g, or 0 to disable' % (given, SYSTEM_LEAST_S))
    return seconds


def _bytes(text: object) -> bytes | None:
    return None if text is None else utf8(text)


def _secrets(config: ConfigLike) -> list[str]:
    from dptrack import _secrets as s
    from dptrack import _values
    flat = [(k, _values.plain(v)) for k, v in _values.flatten(_values.as_mapping(config), '.')]
    named = [str(v) for k, v in flat if s.is_secret_name(k) and s.is_secret_value(v)]
    named += [password for _, v in flat if isinstance(v, str) for password in s.of_addresses(v)]
    return s.of_arguments(sys.argv) + s.of_environment(os.environ) + named


def _main_again() -> bool:
    """Returns true while multiprocessing's spawn runs the main module again in a child, where the parent has started the run."""
    process = sys.modules.get('multiprocessing.process')
    return bool(process and getattr(process.current_process(), '_inheriting', False))


def _record_setup(run: Run, config: ConfigLike, tags: TagsLike, notes: str | None) -> None:
    if run.rank == 0:
        from dptrack import _environment
        for fact, value in _environment.collect(os.environ, run._scrubber).items():
            run._record('environment', run._keys[fact], utf8(value))
        if run.world_size > 1:
            run._record('segment_param', b'world_size', b'%d' % run.world_size)
        if config is not None:
            run.config.update(config)
        for key, value in _tag_pairs(tags):
            run.tag(key, value)
        if notes:
            run.note(notes)
    elif config is not None:
        run.config._values.update(_plain_mapping(config))


def _tag_pairs(tags: Any) -> list[tuple[Any, Any]]:
    if isinstance(tags, (str, bytes)):
        return [(tags, '')]
    try:
        return list(tags.items() if hasattr(tags, 'items') else ((word, '') for word in tags or ()))
    except TypeError:
        raise Error('tags: expected {key: value} or a list of words, not %s' % type(tags).__name__) from None


def _plain_mapping(config: ConfigLike) -> dict[str, Any]:
    from dptrack import _values
    return dict(_values.as_mapping(config).items())


# ---- which run ----

def _find(options: dict[str, Any], run_id: str | None = None) -> tuple[str, int, str] | None:
    """(id, newest segment, folder) of an existing run, or None."""
    import ctypes

    from dptrack import _library
    lib, found, failure = library(), _library.Found(), _library.Failure()
    asked = _library.Options(runs_dir=options['runs_dir'], experiment=options['experiment'], run_name=options['run_name'],
                             run_id=_bytes(run_id))
    code = lib.find(ctypes.byref(found), ctypes.byref(asked), ctypes.byref(failure))
    if code == -2:
        return None
    if code:
        raise Error(failure.text.decode('utf-8', 'replace'))
    return found.id.decode(), found.newest_segment, os.fsdecode(found.dir)


def _wanted(options: dict[str, Any], run_id: str | None, resume: bool | str | None) -> tuple[str, int, str] | None:
    """(id, newest segment, folder) of the run to resume, or None for a new one."""
    if run_id is None and resume == 'auto':
        if not options['run_name']:
            raise Error("resume='auto' finds a run by its name: set run_name")
        return _find(options)
    if run_id is None:
        if resume:
            raise Error('resume requires run_id, or resume="auto" and run_name')
        return None
    found = _find(options, run_id)
    if found is None and resume is True:
        raise Error('run %s not found below %s: omit resume to start a new run' % (run_id, os.fsdecode(options['runs_dir'])))
    return found


def _resume(run: Run, options: dict[str, Any], run_id: str, segment: int) -> None:
    """Adds a segment to a run. Without a given first step, the first logged step opens it."""
    options.update(run_id=_bytes(run_id), reopen=True, segment=segment)
    run.id, run.segment = run_id, segment
    run._prepare(options, open_now='first_step' in options)


def _join(run: Run, context: _job.RankContext, options: dict[str, Any], run_id: str | None, resume: bool | str | None) -> None:
    files, store = _job.meet(os.fsdecode(options['runs_dir']), context) if context.world_size > 1 or context.job else (None, None)
    if context.rank > 0 and (files or store):
        _follow(run, options, store or files)
        return
    found = _wanted(options, run_id, resume)
    before = files.before() if files and not found and run_id is None else None
    if before:
        found = _find(options, before['run_id'])
    if found:
        run.dir = found[2]
        _resume(run, options, found[0], found[1] + 1)
    else:
        options.update(run_id=_bytes(run_id))
        run._prepare(options, open_now=True)
    record = {'run_id': run.id, 'segment': run.segment, 'new': not found, 'first_step': options.get('first_step'),
              'experiment': run.experiment, 'run_name': run.name}
    for place in (files, store):
        if place:
            place.publish(record)


def _follow(run: Run, options: dict[str, Any], place: Any) -> None:
    record = place.wait()
    if record is None:
        raise Error('rank %d found no run of rank 0 within %.0f s: does rank 0 call dptrack.init, with the same runs_dir?' %
                    (run.rank, _job.WAIT_S))
    if record['first_step'] is not None:
        options['first_step'] = record['first_step']
    if record['new']:
        options.update(run_id=_bytes(record['run_id']), experiment=_bytes(record['experiment']),
                       run_name=_bytes(record['run_name']))
        run._prepare(options, open_now=True)
    else:
        _resume(run, options, record['run_id'], record['segment'])

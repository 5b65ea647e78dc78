# SPDX-License-Identifier: Apache-2.0
"""A run by W&B's rules over one of dptrack's: rows that several calls of log fill, numbered from 0; a step metric; a config that
is the run's params."""
import atexit
import functools
import hashlib
import json
import math
import os
import random
import string
import time

import dptrack
from dptrack import _values
from dptrack._run import say
from wandb import _ignored as ignored
from wandb._names import RUN


def _setting(options, name, variable=None):
    """An option of init, of its settings, or of the environment."""
    value = options.get(name)
    if value is None:
        settings = options.get('settings')
        value = settings.get(name) if isinstance(settings, dict) else getattr(settings, name, None)
    return os.environ.get(variable) if value is None and variable else value


def _id_of(entity, project, run_id):
    """The id that `dptrack import` gives the same run."""
    return hashlib.sha256(('wandb %s/%s/%s' % (entity or '', project or '', run_id)).encode()).hexdigest()[:32]


def new_id():
    return ''.join(random.SystemRandom().choice(string.ascii_lowercase + string.digits) for _ in range(8))


def _config_of(options):
    config = options.get('config')
    if isinstance(config, str):  # the path of a YAML file
        ignored.ignore('init(config=%r)' % config, 'pass a mapping')
        return None
    named = options.get('config_include_keys'), options.get('config_exclude_keys')
    if config is None or not any(named):
        return config
    include, exclude = named[0], named[1] or ()
    return {k: v for k, v in _values.as_mapping(config).items() if (not include or k in include) and k not in exclude}


def _begin_recorded(known, run_id, options, resume):
    """dptrack's run of this id, continued where resume says so and it exists."""
    tags = {word: '' for word in known['tags']}
    tags['wandb.run_id'] = run_id
    for tag, value in (('entity', known['entity']), ('group', known['group']), ('job_type', known['job_type'])):
        if value:
            tags['wandb.' + tag] = value
    ours = _id_of(known['entity'], known['project'], run_id)
    if resume != 'must' and not resume:
        ours = ours if options.get('id') or os.environ.get('WANDB_RUN_ID') else None
    return dptrack.init(experiment=known['project'] or 'uncategorized', run_name=known['name'] or run_id, tags=tags,
                        notes=_setting(options, 'notes', 'WANDB_NOTES'), run_id=ours, resume=True if resume == 'must' else None,
                        mode='disabled' if known['mode'] == 'disabled' else None)


def _next_step(recorded):
    """Where the numbers of rows go on: 0 in a new run."""
    from dptrack import _read
    return 0 if recorded.id is None or not recorded.segment else _read.newest_step(recorded.dir) + 1


def begin(**options):
    """Of init's options: project (the experiment), name, id, notes, tags, config, group, job_type, resume, mode ('disabled'
    records nothing; 'online' and 'offline' are one), settings; the environment's WANDB_PROJECT, _NAME, _RUN_ID and so on. dir
    is not used: runs lie where dptrack keeps them ($DPTRACK_RUNS_DIR)."""
    known = {name: _setting(options, name, 'WANDB_' + variable) for name, variable in
             (('project', 'PROJECT'), ('name', 'NAME'), ('entity', 'ENTITY'), ('mode', 'MODE'), ('group', 'RUN_GROUP'), ('job_type', 'JOB_TYPE'))}
    if known['mode'] not in (None, 'online', 'offline', 'disabled', 'dryrun', 'shared'):
        say('wandb.init: mode %r is taken as "online": expected online, offline or disabled' % (known['mode'],))
    tags = _setting(options, 'tags') or os.environ.get('WANDB_TAGS', '').split(',')
    known.update(tags=tuple(filter(None, (tags,) if isinstance(tags, str) else tags)), notes=_setting(options, 'notes', 'WANDB_NOTES'))
    resume = _setting(options, 'resume', 'WANDB_RESUME')
    run_id = _setting(options, 'id', 'WANDB_RUN_ID') or new_id()
    recorded = _begin_recorded(known, run_id, options, resume)
    run = Run(recorded, run_id, known)
    atexit.register(run._record_rest)  # before dptrack closes the run
    _careful(run.config.update)(_config_of(options) or {})
    return run


def _plain(value):
    """A setting as W&B stores it: lists as compact JSON, None as null; numbers that are not finite as words."""
    if value is None:
        return 'null'
    if isinstance(value, float) and not math.isfinite(value):
        return 'NaN' if value != value else 'Infinity' if value > 0 else '-Infinity'
    if isinstance(value, (list, tuple)):
        try:
            return json.dumps(value, default=lambda inner: _values.plain(inner), ensure_ascii=False, separators=(',', ':'))
        except (TypeError, ValueError, RecursionError):
            pass
    return _values.plain(value)


def _is_lost(value):
    """Nothing to record, or what a line has named already."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_lost, value))
    return value is None or isinstance(value, (ignored.Nothing, ignored.Artifact)) or getattr(value, 'lost', False) is True


def _text(value):
    return 'true' if value is True else 'false' if value is False else repr(value) if isinstance(value, float) else str(value)


class Config:
    """The params, as attributes or items. A value may change: the store then notes both."""

    def __init__(self, run, values=None):
        self.__dict__.update(_run=run, _items={}, _kept={})
        self.update(values or {})

    def update(self, values, allow_val_change=None, **named):
        values = dict(_values.as_mapping(values), **named)
        self._items.update((str(key), value) for key, value in values.items())
        for name, value in _values.flatten(values, '.'):
            value = _plain(value)
            if name not in self._kept:
                self._run._record_param(name, value)
            elif self._kept[name] != value or type(self._kept[name]) is not type(value):
                self._run._record('param_change', self._run._keys[name],
                                  str(self._run._scrubber.setting(name, _text(value))).encode('utf-8', 'replace'))
            self._kept[name] = value

    def setdefaults(self, values):
        self.update({key: value for key, value in _values.as_mapping(values).items() if key not in self._items})

    def setdefault(self, key, value=None):
        self.setdefaults({key: value})
        return self._items[key]

    def as_dict(self):
        return dict(self._items)

    def persist(self):
        """Params are recorded at once."""

    def update_locked(self, values, user=None, _allow_val_change=None):
        self.update(values)

    merge_locked = update_locked

    def __getattr__(self, name):
        if name in self._items:
            return self._items[name]
        if name.startswith('__') or not hasattr(dict, name):
            raise AttributeError("'Config' object has no attribute %r" % name)
        return getattr(dict(self._items), name)

    def __setattr__(self, name, value):
        self.update({name: value})

    __setitem__ = __setattr__

    def __getitem__(self, name):
        return self._items[name]

    def __delitem__(self, name):
        del self._items[name]

    def __contains__(self, name):
        return name in self._items

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def keys(self):
        return self._items.keys()

    def items(self):
        return self._items.items()

    def get(self, *arguments):
        return self._items.get(*arguments)

    def __repr__(self):
        return repr(self._items)


class Summary:
    """Final values, as attributes or items. A number of a key without rows becomes a point at the run's last step; of a key
    with rows, and every text, it is a tag, summary.KEY where the key has rows."""

    def __init__(self, run):
        self.__dict__.update(_run=run, _set={})

    def _all(self):
        return {**self._run._last, **self._set}

    def update(self, values=None, **named):
        for key, value in _values.flatten(dict(_values.as_mapping(values), **named), '.'):
            self._set[key] = value
            if isinstance(value, str):
                self._run.tag(key, value)
            elif _values.number(value) is None and value is not None:
                ignored.ignore('summary[%r]' % key)

    def _record(self):
        """Records the numbers, when all rows are."""
        for key, value in self._set.items():
            logged, number = self._run._last.get(key), _values.number(value)
            if number is not None and logged is None:
                self._run.summary.update({key: number})
            elif number is not None and number != logged:
                self._run.tag('summary.' + key, _text(_plain(value)))
        self._set.clear()

    def __getattr__(self, name):
        if name.startswith('__') or (name not in self._all() and not hasattr(dict, name)):
            raise AttributeError(name)
        return self._all()[name] if name in self._all() else getattr(self._all(), name)

    def __setattr__(self, name, value):
        self.update({name: value})

    __setitem__ = __setattr__

    def __getitem__(self, name):
        return self._all()[name]

    def __delitem__(self, name):
        self._set.pop(name, None)

    def __contains__(self, name):
        return name in self._all()

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._all())

    def keys(self):
        return self._all().keys()

    def get(self, *arguments):
        return self._all().get(*arguments)

    def __repr__(self):
        return repr(self._all())


def _careful(function):
    """A call that records: what goes wrong inside is a line, said once, not the end of the training."""
    said = set()

    @functools.wraps(function)
    def call(*arguments, **named):
        try:
            return function(*arguments, **named)
        except Exception as error:
            text = 'wandb.%s: not recorded: %s: %s' % (function.__name__, type(error).__name__, error)
            if text not in said and len(said) < 100:
                said.add(text)
                say(text)
            return None
    return call


class Run:
    """What init returns."""

    def __init__(self, recorded, run_id, known):
        self._recorded, self.id, self._known = recorded, run_id, known
        self._config, self._summary = Config(recorded), Summary(recorded)
        self._tags, self._notes, self._name = tuple(known.get('tags') or ()), known.get('notes'), known['name'] or run_id
        self.start_time = time.time()
        self._row, self._step, self._watches, self._late = {}, _next_step(recorded), [], 0
        self.resumed, self.starting_step = self._step > 0, self._step

    # ---- what it is ----

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, name):
        self._name = str(name)
        self._recorded.tag('dptrack.run_name', self._name)

    display_name = name

    @property
    def notes(self):
        return self._notes

    @notes.setter
    def notes(self, notes):
        self._notes = notes
        self._recorded.note(notes or '')

    @property
    def tags(self):
        return self._tags

    @tags.setter
    def tags(self, tags):
        tags = (tags,) if isinstance(tags, str) else tuple(tags or ())
        for tag in tags:
            if tag not in self._tags:
                self._recorded.tag(str(tag))
        self._tags = tags

    config = property(lambda self: self._config, lambda self, values: self._config.update(values))
    config_static = property(lambda self: dict(self._config))
    summary = property(lambda self: self._summary)
    settings = property(lambda self: ignored.Nothing('run.settings'))
    sweep_id = sweep_url = None
    dir = property(lambda self: self._recorded.dir)
    project = property(lambda self: self._known['project'] or 'uncategorized')
    entity = property(lambda self: self._known['entity'] or '')
    group = property(lambda self: self._known['group'])
    job_type = property(lambda self: self._known['job_type'])
    url = property(lambda self: os.environ.get('DPTRACK_URL'))
    step = property(lambda self: self._step)
    ended = property(lambda self: self._recorded._state == 'closed')
    disabled = property(lambda self: self._known['mode'] == 'disabled')
    offline = True
    path = property(lambda self: '%s/%s/%s' % (self.entity, self.project, self.id))

    project_url = property(lambda self: self.url)

    def project_name(self):
        return self.project

    def get_url(self):
        return self.url

    get_project_url = get_sweep_url = get_url

    def status(self):
        return ignored.Nothing('run.status')

    def to_html(self, *arguments, **named):
        return ''

    def display(self, *arguments, **named):
        return False

    # ---- rows ----

    def log(self, data, step=None, commit=None, sync=None):
        """Fills the row of a step, which is recorded when the next one begins, or at once with commit (without a step that is
        the rule). A row whose step is below the current one is left out, as by W&B; the first one and their number are reported."""
        if not hasattr(data, 'items'):
            say('wandb.log: a dictionary was expected, not a %s: nothing of it is recorded' % type(data).__name__)
            return
        if step is not None:
            step = self._recorded._as_step(step)
            if step is None or self._is_late(step):
                return
            if step > self._step:
                self._record_row()
                self._step = step
        self._row.update((key, value) for key, value in _values.flatten(data, '.') if not _is_lost(value))
        if commit or (commit is None and step is None):
            self._record_row()
            self._step += 1

    def _is_late(self, step):
        if step >= self._step:
            return False
        self._late += 1
        self._recorded._say_once('late', 'wandb.log: step %d is below the current step %d: this row and later ones like it are left out, as '
                                 'by W&B: omit step to continue from %d, or count such values by define_metric(KEY, step_metric=...)' %
                                 (step, self._step, self._step))
        return True

    def _record_rest(self):
        """What is not recorded yet when the run ends: the row under way, final values."""
        if not self.ended:
            self._record_row()
            self._summary._record()
            if self._late:
                say('wandb.log: %d row%s left out: the step was below the current one' % (self._late, ' was' if self._late == 1 else 's were'))
                self._late = 0

    def _record_row(self):
        row, self._row = self._row, {}
        if row:
            self._recorded.log(row, step=self._step)

    def define_metric(self, name, step_metric=None, step_sync=None, hidden=None, summary=None, goal=None, overwrite=None):
        """name: a key or a pattern with *; step_metric: the key that counts its steps."""
        step_metric = getattr(step_metric, 'name', step_metric)
        if summary and not set(summary.split(',')) <= {'min', 'max', 'last', 'first', 'none'}:
            ignored.ignore('define_metric(summary=%r)' % summary)
        self._recorded.define_metric(name, step_metric, summary)

    def watch(self, models, criterion=None, log='gradients', log_freq=1000, idx=None, log_graph=False):
        """Histograms of gradients and parameters, in the row that comes next."""
        from dptrack import _watch
        several = models if isinstance(models, (list, tuple)) else [models]
        for number, model in enumerate(several):
            self._watches.append(_watch.watch(model, log=log, log_freq=log_freq, prefix='graph_%d' % number if number else '',
                                              record=lambda key, histogram: self._row.update({key: histogram})))

    def unwatch(self, models=None):
        for one in self._watches:
            one.remove()
        self._watches = []

    # ---- what is no row ----

    def alert(self, title, text='', level=None, wait_duration=None):
        self._recorded.alert(title, text, level or 'info')

    def log_code(self, *arguments, **named):
        """Commit, diff and packages are recorded with the run."""

    def mark_preempting(self):
        """Does nothing: rows are recorded at once."""

    def _label(self, *arguments, **named):
        """Which library calls, for W&B's own statistics."""

    def log_artifact(self, artifact_or_path=None, name=None, type=None, aliases=None, tags=None):
        if isinstance(artifact_or_path, ignored.Artifact):
            return artifact_or_path
        return ignored.Artifact(name or os.path.basename(str(artifact_or_path)), type or '')

    upsert_artifact = finish_artifact = log_model = log_artifact

    def use_artifact(self, artifact_or_name=None, type=None, **left):
        return self.log_artifact(artifact_or_name, str(artifact_or_name), type)

    def use_model(self, name=None):
        return ignored.Artifact(str(name)).download()

    def link_artifact(self, *arguments, **named):
        ignored.ignore('link_artifact')

    link_model = link_artifact

    def restore(self, *arguments, **named):
        """W&B's answer where there is no such file."""
        ignored.ignore('restore')

    def save(self, glob_str=None, base_path=None, policy=None):
        """The paths of the files that match; copies of them are kept with the run, as they are now, under their paths from
        base_path on."""
        import glob

        from dptrack._media import File
        if glob_str is None:
            return True
        glob_str = os.fspath(glob_str)
        base = base_path or (os.path.dirname(glob_str) if os.path.isabs(glob_str) else os.curdir)
        found = sorted(path for path in glob.glob(glob_str, recursive=True) if os.path.isfile(path))
        for path in found:
            self._recorded.keep(File(path, name=os.path.relpath(path, base)))
        return found

    def finish(self, exit_code=None, quiet=None):
        """Records the row under way; an exit code other than 0 is a failure."""
        self._record_rest()
        self.unwatch()
        self._recorded.finish('failed' if exit_code else 'finished', 'exit code %s' % exit_code if exit_code else None)

    join = finish

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self._record_rest()
        self._recorded.__exit__(kind, value, traceback)

    def __getattr__(self, name):
        if name.startswith('_') or name not in RUN:
            raise AttributeError("'Run' object has no attribute %r" % name)
        return ignored.Nothing('run.' + name)


for _name in ('log', 'define_metric', 'watch', 'unwatch', 'alert', 'save'):
    setattr(Run, _name, _careful(getattr(Run, _name)))
for _of in (Config, Summary):
    _of.update = _careful(_of.update)

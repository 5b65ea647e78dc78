"""A run by W&B's rules over one of dptrack's: rows that several calls of log fill, numbered from 0; a step metric; a config that
is the run's params."""
import hashlib
import os
import random
import string

import dptrack
from dptrack._run import say


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
    named = options.get('config_include_keys'), options.get('config_exclude_keys')
    if config is None or isinstance(config, str) or not any(named):
        return config
    from dptrack import _values
    include, exclude = named[0], named[1] or ()
    return {k: v for k, v in _values.as_mapping(config).items() if (not include or k in include) and k not in exclude}


def _begin_recorded(known, run_id, options, resume):
    """dptrack's run of this id, gone on with where resume says so and it is there."""
    tags = {word: '' for word in _setting(options, 'tags', None) or ()}
    tags['wandb.run_id'] = run_id
    for tag, value in (('entity', known['entity']), ('group', known['group']), ('job_type', known['job_type'])):
        if value:
            tags['wandb.' + tag] = value
    ours = _id_of(known['entity'], known['project'], run_id)
    if resume != 'must' and not resume:
        ours = ours if options.get('id') or os.environ.get('WANDB_RUN_ID') else None
    return dptrack.init(experiment=known['project'] or 'uncategorized', run_name=known['name'], config=_config_of(options), tags=tags,
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
    resume = _setting(options, 'resume', 'WANDB_RESUME')
    run_id = _setting(options, 'id', 'WANDB_RUN_ID') or new_id()
    recorded = _begin_recorded(known, run_id, options, resume)
    return Run(recorded, run_id, known)


class Config:
    """The params. The first value of a key stays, also where allow_val_change is asked."""

    def __init__(self, recorded):
        self.__dict__['_of'] = recorded.config

    def update(self, values, allow_val_change=None):
        self._of.update(values)

    def setdefaults(self, values):
        for key, value in dict(values).items():
            self._of.setdefault(key, value)

    def as_dict(self):
        return self._of.as_dict()

    def __getattr__(self, name):
        return getattr(self._of, name)

    def __setattr__(self, name, value):
        self._of.update({name: value})

    def __setitem__(self, name, value):
        self._of.update({name: value})

    def __getitem__(self, name):
        return self._of[name]

    def __contains__(self, name):
        return name in self._of

    def __iter__(self):
        return iter(self._of)

    def __len__(self):
        return len(self._of)


class Run:
    """What init returns."""

    def __init__(self, recorded, run_id, known):
        self._recorded, self.id, self._known = recorded, run_id, known
        self.config = Config(recorded)
        self._row, self._step, self._watches = {}, _next_step(recorded), []
        self.resumed, self.starting_step = self._step > 0, self._step

    # ---- what it is ----

    name = property(lambda self: self._recorded.name or self.id)
    dir = property(lambda self: self._recorded.dir)
    project = property(lambda self: self._known['project'] or 'uncategorized')
    entity = property(lambda self: self._known['entity'] or '')
    group = property(lambda self: self._known['group'])
    job_type = property(lambda self: self._known['job_type'])
    url = property(lambda self: os.environ.get('DPTRACK_URL'))
    step = property(lambda self: self._step)
    summary = property(lambda self: self._recorded.summary)
    ended = property(lambda self: self._recorded._state == 'closed')
    disabled = property(lambda self: self._known['mode'] == 'disabled')
    offline = True
    path = property(lambda self: '%s/%s/%s' % (self.entity, self.project, self.id))

    def project_name(self):
        return self.project

    def get_url(self):
        return self.url

    # ---- rows ----

    def log(self, data, step=None, commit=None, sync=None):
        """Fills the row of a step, which is recorded when the next one begins, or at once with commit (without a step that is
        the rule). A step below the row's is refused with a line."""
        if not hasattr(data, 'items'):
            raise ValueError('wandb.log must be passed a dictionary')
        if step is not None:
            step = int(step)
            if step < self._step:
                say('step %d comes after step %d: what it says is lost (steps must not fall)' % (step, self._step))
                return
            if step > self._step:
                self._record_row()
                self._step = step
        self._row.update((key, value) for key, value in data.items() if value is not None)
        if commit or (commit is None and step is None):
            self._record_row()
            self._step += 1

    def _record_row(self):
        row, self._row = self._row, {}
        if row:
            self._recorded.log(row, step=self._step)

    def define_metric(self, name, step_metric=None, step_sync=None, hidden=None, summary=None, goal=None, overwrite=None):
        """name: a key or a pattern with *; step_metric: the key that counts its steps."""
        step_metric = getattr(step_metric, 'name', step_metric)
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

    def log_artifact(self, *arguments, **named):
        raise NotImplementedError('dptrack stands for wandb here and records no artifacts')

    use_artifact = link_artifact = log_artifact

    def save(self, glob_str, base_path=None, policy=None):
        """The paths of the files that match; copies of them are kept with the run, as they are now, under their paths from
        base_path on."""
        import glob

        from dptrack._media import File
        base = base_path or (os.path.dirname(glob_str) if os.path.isabs(glob_str) else os.curdir)
        found = sorted(path for path in glob.glob(glob_str, recursive=True) if os.path.isfile(path))
        for path in found:
            self._recorded.keep(File(path, name=os.path.relpath(path, base)))
        return found

    def finish(self, exit_code=None, quiet=None):
        """Records the row under way; an exit code other than 0 is a failure."""
        self._record_row()
        self.unwatch()
        self._recorded.finish('failed' if exit_code else 'finished', 'exit code %d' % exit_code if exit_code else None)

    join = finish

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self._record_row()
        self._recorded.__exit__(kind, value, traceback)

    def __getattr__(self, name):
        raise AttributeError('dptrack stands for wandb here and has no wandb.run.%s' % name)

# SPDX-License-Identifier: Apache-2.0
"""A run: init starts it, log records values, finish or the end of the process closes it. libdptrack writes the journal from
its threads; this module converts Python values to its arguments."""
import os
import sys

_PLAIN = frozenset((float, bool))
OFF, WAITING, OPEN, CLOSED, FORKED = 'off', 'waiting', 'open', 'closed', 'forked'

_active = []
_shared = {}  # the library and its callbacks, once loaded


class Error(RuntimeError):
    """A run cannot be started, or a call needs an active run."""


def active():
    """The run that init started last and that is not finished, or None."""
    return _active[-1] if _active else None


def say(text):
    """Prints a line for the user on stderr."""
    try:
        print('dptrack: ' + text, file=sys.stderr, flush=True)
    except Exception:  # a closed stderr must not end a training
        pass


def library():
    if not _shared:
        from dptrack import _library
        lib = _library.load()
        _shared.update(warn=_library.WARN(lambda user, text: say(text.decode('utf-8', 'replace'))), module=_library, lib=lib)
    return _shared['lib']


def _fits(numbers):
    """Returns true if all are Python numbers that a double holds exactly."""
    return all(type(n) is float or (type(n) in (int, bool) and -2**1023 < n < 2**1023) for n in numbers)


class _Keys(dict):
    """Encoded keys by key, each encoded once."""

    def __missing__(self, key):
        encoded = str(key).encode('utf-8', 'replace').replace(b'\0', b'\1')  # the library rejects \1 with a warning
        self[key] = encoded
        return encoded


class _Row:
    """Arrays for the points of one set of keys."""

    def __init__(self, keys):
        import ctypes
        self.count = len(keys)
        self.keys = (ctypes.c_char_p * self.count)(*keys)
        self.values = (ctypes.c_double * self.count)()
        self.at = ctypes.addressof(self.keys), ctypes.addressof(self.values)


class Config:
    """The run's params, read as attributes or items. The first value of a key stays."""

    def __init__(self, run):
        self.__dict__['_run'], self.__dict__['_values'] = run, {}

    def update(self, config, allow_val_change=None):
        from dptrack import _values
        values = _values.as_mapping(config)
        for key in values:
            self._values.setdefault(str(key), values[key])
        for name, value in _values.flatten(values, '.'):
            self._run._record_param(name, _values.plain(value))

    def setdefault(self, key, value):
        if key not in self._values:
            self.update({key: value})
        return self._values[key]

    def __getattr__(self, key):
        try:
            return self._values[key]
        except KeyError:
            raise AttributeError('the run has no param %r' % key) from None

    def __setattr__(self, key, value):
        self.update({key: value})

    __setitem__ = __setattr__

    def __getitem__(self, key):
        return self._values[key]

    def __contains__(self, key):
        return key in self._values

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def keys(self):
        return self._values.keys()

    def items(self):
        return self._values.items()

    def get(self, key, otherwise=None):
        return self._values.get(key, otherwise)

    def as_dict(self):
        return dict(self._values)

    def __repr__(self):
        return 'Config(%r)' % self._values


class Summary:
    """The newest value of each key, or its minimum or maximum by define_metric. Setting a number records a point at the last
    step; setting a text records a tag."""

    def __init__(self, run):
        self._run = run

    def update(self, values):
        from dptrack import _values
        for key, value in _values.flatten(_values.as_mapping(values), '/'):
            self._run._record_summary(key, value)

    def __setitem__(self, key, value):
        self.update({key: value})

    def __getitem__(self, key):
        return self._run._last[key]

    def __contains__(self, key):
        return key in self._run._last

    def __iter__(self):
        return iter(self._run._last)

    def __len__(self):
        return len(self._run._last)

    def keys(self):
        return self._run._last.keys()

    def items(self):
        return self._run._last.items()

    def get(self, key, otherwise=None):
        return self._run._last.get(key, otherwise)

    def __repr__(self):
        return 'Summary(%r)' % dict(self._run._last)


class Run:
    """Created by init. Any thread may log; the points of one thread keep their order. Its attributes are id, name, dir,
    segment, rank and world_size."""

    def __init__(self, rank=0, world_size=1):
        from dptrack._secrets import Pieces, Scrubber
        self.id = self.name = self.dir = None
        self.experiment, self.segment, self.rank, self.world_size = 'default', 0, rank, world_size
        self.config, self.summary = Config(self), Summary(self)
        self._state, self._handle, self._options, self._pending, self._after = OFF, None, {}, [], []
        self._keys, self._rows, self._last = _Keys(), {}, {}
        self._step, self._rules, self._said, self._process = 0, {}, set(), os.getpid()
        self._system_s = 0.0
        self._scrubber = Scrubber()
        self._pieces = {stream: Pieces(self._scrubber) for stream in (1, 2)}

    # ---- points ----

    def log(self, values, step=None):
        """Records {key: number} at a step (default: the last step plus 1). Keys of nested mappings are joined by '/'. item() is
        called on tensors, which waits for the device."""
        handle = self._handle
        if handle is None:
            handle = self._enter(step)
            if handle is None:
                return
        if step is None:
            step = self._step + 1
        elif type(step) is not int:
            step = int(step)
        self._step = step
        if self._rules:
            self._log_defined(values, step)
        elif len(values) == 1:
            for key, value in values.items():
                if type(value) is float and type(key) is str:
                    self._last[key] = value
                    _shared['lib'].log(handle, step, self._keys[key], value)
                else:
                    self._log_any(handle, step, key, value)
        elif values:
            self._log_row(handle, step, values)

    def _log_row(self, handle, step, values):
        """Logs several values at once. A row is removed from the table while in use, so threads and signal handlers cannot share it."""
        names = tuple(values)
        row = self._rows.pop(names, None)
        if row is None:
            row = _Row([self._keys[name] for name in names])
        numbers = list(values.values())
        if _PLAIN.issuperset(map(type, numbers)) or _fits(numbers):
            row.values[:] = numbers
            _shared['lib'].log_many(handle, step, row.count, *row.at)
            self._last.update(values)
        else:
            for key, value in values.items():
                self._log_any(handle, step, key, value)
        self._rows[names] = row

    def log_rank(self, values, step):
        """Records {key: number} in the series of this rank; log of rank 0 records the run's series. Does not open a segment that
        waits for its first step."""
        handle = self._handle
        if handle is not None:
            for key, value in values.items():
                _shared['lib'].log_rank(handle, self.rank, step, self._keys[key], value)

    def log_next_step(self, key, value):
        """Records one value at the next step of log without advancing the step."""
        if self._handle is not None:
            self._log_any(self._handle, self._step + 1, key, value)

    def _log_any(self, handle, step, key, value):
        from collections.abc import Mapping

        from dptrack import _values
        if isinstance(value, Mapping):
            for name, leaf in _values.flatten(value, '/', '%s/' % (key,)):
                self._log_any(handle, step, name, leaf)
            return
        number = _values.number(value)
        if number is None:
            self._log_media(handle, step, key, value)
            return
        self._last[key] = number
        _shared['lib'].log(handle, step, self._keys[key], number)

    def _log_media(self, handle, step, key, value):
        """Records media, a list as KEY/0, KEY/1, ...; a str is recorded as a text."""
        from dptrack import _media
        if isinstance(value, str):
            value = _media.Text(value)
        if isinstance(value, _media.File):
            self.keep(value)
            return
        several = isinstance(value, (list, tuple)) and value and all(isinstance(one, _media.Media) for one in value)
        if several:
            for n, one in enumerate(value):
                one.record(_shared['lib'], handle, step, self._keys['%s/%d' % (key, n)], self._scrubber.text)
        elif isinstance(value, _media.Media):
            value.record(_shared['lib'], handle, step, self._keys[key], self._scrubber.text)
        elif key not in self._said:
            self._said.add(key)
            say('values of "%s" are lost: %s is neither a number nor media' % (key, type(value).__name__))

    def _log_defined(self, values, step):
        """Applies the rules of define_metric, where a key may take its steps from another key."""
        from dptrack import _values
        flat = dict(_values.flatten(values, '/'))
        for key, value in flat.items():
            rule = self._rule(key)
            if rule is None:
                self._log_any(self._handle, step, key, value)
                continue
            kept = self._last.get(key)
            self._log_any(self._handle, self._step_of(rule, flat, step), key, value)
            if rule['summary'] in ('min', 'max') and kept is not None and key in self._last:
                self._last[key] = (min if rule['summary'] == 'min' else max)(kept, self._last[key])

    def _step_of(self, rule, flat, step):
        from dptrack import _values
        if not rule['step_metric']:
            return step
        at = _values.number(flat.get(rule['step_metric'], self._last.get(rule['step_metric'])))
        return int(at) if at is not None and at == int(at) else step

    def _rule(self, key):
        import fnmatch
        if key in self._rules:
            return self._rules[key]
        found = next((rule for name, rule in self._rules.items() if '*' in name and fnmatch.fnmatchcase(key, name)), None)
        return found if found is None or found['step_metric'] != key else None

    def define_metric(self, name, step_metric=None, summary=None):
        """name: a key or a pattern with *. step_metric: the key whose integer values are its steps (epochs). summary:
        'min' or 'max': which value run.summary holds."""
        self._rules[name] = {'step_metric': step_metric, 'summary': summary}

    # ---- records that are not points ----

    def alert(self, title, text='', level='info'):
        """Sends an alert. level: 'info', 'warning' or 'error'."""
        levels = {'info': 1, 'warning': 2, 'warn': 2, 'error': 3}
        hidden = self._scrubber.text
        self._record('alert', levels.get(str(getattr(level, 'value', level)).lower(), 1), self._step,
                   hidden(str(title)).encode('utf-8', 'replace') or b'alert', hidden(str(text)).encode('utf-8', 'replace'))

    def printed(self, stream, text):
        """Records console output; called by _console."""
        handle = self._handle
        if handle is not None and isinstance(text, str):
            self._print(handle, stream, self._pieces[stream].add(text))

    def _print(self, handle, stream, text):
        if text:
            encoded = text.encode('utf-8', 'replace')
            _shared['lib'].console(handle, stream, encoded, len(encoded))

    def code(self, name, text):
        """Records a part of the code state by name: 'commit', 'diff', 'packages', or any other."""
        self._record('code', self._keys[name], self._scrubber.text(text).encode('utf-8', 'replace').replace(b'\0', b''))

    def keep(self, file):
        """Copies a dptrack.File into the run; log does the same."""
        if self._handle is None and self._enter(None) is None:
            return
        why = file.wrong_name()
        if why:
            say('file "%s" is not kept: %s' % (file.name, why))
        else:
            _shared['lib'].file(self._handle, file.name.encode(), os.fsencode(file.path))

    def tag(self, key, value=''):
        """Sets a tag; the last value wins."""
        self._record('tag', self._keys[key], self._scrubber.setting(key, str(value)).encode('utf-8', 'replace'))

    def note(self, markdown):
        """Sets the run's note; the last one wins."""
        self._record('note', self._scrubber.text(str(markdown)).encode('utf-8', 'replace'))

    def _record_param(self, name, value):
        value = self._scrubber.setting(name, value)
        if isinstance(value, bool):
            self._record('param_bool', self._keys[name], value)
        elif isinstance(value, int) and -2**63 <= value < 2**63:
            self._record('param_i64', self._keys[name], value)
        elif isinstance(value, float):
            self._record('param_f64', self._keys[name], value)
        else:
            self._record('param', self._keys[name], str(value).encode('utf-8', 'replace').replace(b'\0', b''))

    def _record_summary(self, key, value):
        from dptrack import _values
        number = _values.number(value)
        if number is None:
            self.tag(key, _values.plain(value))
        elif self._handle is not None or self._enter(None) is not None:
            self._log_any(self._handle, self._step, key, number)

    def _record(self, name, *arguments):
        if self._handle is not None:
            getattr(_shared['lib'], name)(self._handle, *arguments)
        elif self._state == WAITING:
            self._pending.append((name, arguments))

    def flush(self, wait_s=10.0):
        """Waits until all records so far are in the journal; returns false after wait_s seconds."""
        return self._handle is not None and _shared['lib'].flush(self._handle, wait_s) == 0

    @property
    def dropped(self):
        """Number of points lost so far."""
        return _shared['lib'].dropped(self._handle) if self._handle is not None else 0

    # ---- start and end ----

    def _prepare(self, options, open_now):
        self._options, self._state = options, WAITING
        if open_now:
            self._open()

    def _open(self):
        import ctypes
        lib, module = library(), _shared['module']
        handle, failure = ctypes.c_void_p(), module.Failure()
        options = module.Options(warn=_shared['warn'], **self._options)
        if lib.run_open(ctypes.byref(handle), ctypes.byref(options), ctypes.byref(failure)):
            self._state = OFF
            raise Error(failure.text.decode('utf-8', 'replace'))
        self._handle, self._state = handle, OPEN
        self.id, self.name = lib.run_id(handle).decode(), lib.run_name(handle).decode()
        self.dir, self.segment = os.fsdecode(lib.run_dir(handle)), lib.run_segment(handle)
        if self._system_s:
            self._watch_machine(lib, handle)
        pending, self._pending = self._pending, []
        for name, arguments in pending:
            getattr(lib, name)(handle, *arguments)
        for call in self._after:
            call(self)

    def _watch_machine(self, lib, handle):
        from dptrack import _environment
        uuid = _environment.gpu_uuid()
        if uuid:
            lib.gpu(handle, uuid.encode())
        lib.system(handle, self._system_s)

    def _enter(self, step):
        """Opens a run that waits for its first step. Returns the handle, or None with a message: nothing is recorded then."""
        if self._state == WAITING:
            first = self._step + 1 if step is None else int(step)
            self._options.update(first_step=first)
            try:
                self._open()
            except Error as error:
                say('nothing is recorded: %s' % error)
        elif self._state == FORKED and 'fork' not in self._said:
            self._said.add('fork')
            say('run %s belongs to process %d; nothing of process %d is recorded: call dptrack.init there' %
                (self.name, self._process, os.getpid()))
        elif self._state == CLOSED and 'closed' not in self._said:
            self._said.add('closed')
            say('run %s is finished: what is logged now is lost' % self.name)
        return self._handle

    def finish(self, status=None, reason=None):
        """Writes what is queued and the status ('finished' unless given: 'failed', 'killed', 'preempted'), waits for the disk
        and some seconds for a server. A second call does nothing."""
        from dptrack import _atexit
        status = status or 'finished'
        codes = library() and _shared['module'].STATUS if self._state in (OPEN, WAITING) else {status: 0}
        if status not in codes:
            raise ValueError('status %r: expected one of %s' % (status, ', '.join(sorted(codes))))
        if self._state == WAITING:
            self._options.update(first_step=self._step + 1)
            try:
                self._open()
            except Error as error:
                say('nothing was recorded: %s' % error)
        if self in _active:
            _active.remove(self)
        _atexit.forget(self)
        if 'dptrack._console' in sys.modules:
            sys.modules['dptrack._console'].remove(self)
        handle, self._handle = self._handle, None
        if handle is None:
            return
        self._state = CLOSED
        self._close(handle, status, reason)

    def _close(self, handle, status, reason):
        lib, codes = _shared['lib'], _shared['module'].STATUS
        for stream, pieces in self._pieces.items():
            self._print(handle, stream, pieces.rest())
        text = self._scrubber.text(reason).encode('utf-8', 'replace') if reason else None
        if self.rank > 0:
            lib.run_close(handle, codes['running'])
            if status == 'failed':
                self._fail_job(codes[status], 'rank %d: %s' % (self.rank, reason))
            return
        if text:
            lib.set_status(handle, codes[status], text)
        lib.run_close(handle, codes[status])

    def _fail_job(self, code, reason):
        """Records that this rank failed, which ends the job. Only rank 0 and the launcher may set the run's status, so it is
        written as a launcher's journal."""
        import ctypes
        lib, module = _shared['lib'], _shared['module']
        handle = ctypes.c_void_p()
        options = dict(self._options, role=module.LAUNCHER, rank=0, segment=self.segment)
        if not lib.run_open(ctypes.byref(handle), ctypes.byref(module.Options(warn=_shared['warn'], **options)), None):
            lib.set_status(handle, code, self._scrubber.text(reason).encode('utf-8', 'replace'))
            lib.run_close(handle, code)

    def forked(self):
        """Called in a forked child: the run remains with the parent."""
        if self._handle is not None or self._state == WAITING:
            self._handle, self._state = None, FORKED

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        from dptrack import _atexit
        self.finish(*_atexit.judge(kind, value))

    def __repr__(self):
        return 'Run(%r, id=%r, %s)' % (self.name, self.id, self._state)


def init(experiment=None, run_name=None, config=None, tags=None, runs_dir=None, **options):
    """Starts a run and returns it; dptrack._init documents the options."""
    from dptrack import _init
    named = dict(options, experiment=experiment, run_name=run_name, config=config, tags=tags, runs_dir=runs_dir)
    previous = active()
    if previous is not None:
        previous.finish()
    run = _init.begin(Run, **named)
    _active.append(run)
    return run

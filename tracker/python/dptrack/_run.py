# SPDX-License-Identifier: Apache-2.0
"""A run: init starts it, log records values, finish or the end of the process closes it. libdptrack writes the journal from
its threads; this module converts Python values to its arguments."""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Union

    from dptrack._library import Library
    from dptrack._media import File

    # Params: a mapping, an argparse namespace, a dataclass or any object with attributes.
    ConfigLike = Union[Mapping[str, Any], object, None]
    TagsLike = Union[Mapping[str, object], Iterable[str], None]

_PLAIN = frozenset((float, bool))
OFF, WAITING, OPEN, CLOSED, FORKED = 'off', 'waiting', 'open', 'closed', 'forked'

_active: list[Run] = []
_shared: dict[str, Any] = {}  # the library and its callbacks, once loaded


class Error(RuntimeError):
    """A run cannot be started, or a call needs an active run."""


def active() -> Run | None:
    """The run that init started last and that is not finished, or None."""
    return _active[-1] if _active else None


_UNSAFE = '[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]'


def say(text: str) -> None:
    """Prints a line for the user on stderr; control characters of what it quotes are escaped, as by the library."""
    import re
    text = re.sub(_UNSAFE, lambda found: ('\\x%02x' if found[0] < '\x80' else '\\u%04x') % ord(found[0]), text)
    try:
        print('dptrack: %s\n' % text, end='', file=sys.stderr, flush=True)  # one write: threads and processes share stderr
    except Exception:  # a closed stderr must not end a training
        pass


def utf8(text: object) -> bytes:
    """Encodes a text for the library, where NUL would end it."""
    return str(text).encode('utf-8', 'replace').replace(b'\0', b'')


def library() -> Library:
    if not _shared:
        from dptrack import _library
        lib = _library.load()
        _shared.update(warn=_library.WARN(lambda user, text: say(text.decode('utf-8', 'replace'))), module=_library, lib=lib)
    loaded: Library = _shared['lib']
    return loaded


def _fits(numbers: Sequence[Any]) -> bool:
    """Returns true if all are Python numbers that a double holds exactly."""
    return all(type(n) is float or (type(n) in (int, bool) and -2**1023 < n < 2**1023) for n in numbers)


class _Keys(dict):  # type: ignore[type-arg]
    """Encoded keys by key, each encoded once."""

    def __missing__(self, key: object) -> bytes:
        encoded = str(key).encode('utf-8', 'replace').replace(b'\0', b'\1')  # the library rejects \1 with a warning
        self[key] = encoded
        return encoded


class _Row:
    """Arrays for the points of one set of keys."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        import ctypes
        self.count = len(keys)
        self.keys = (ctypes.c_char_p * self.count)(*keys)
        self.values = (ctypes.c_double * self.count)()
        self.at = ctypes.addressof(self.keys), ctypes.addressof(self.values)


class Config:
    """The run's params, read as attributes or items. The first value of a key stays."""

    _run: Run
    _values: dict[str, Any]

    def __init__(self, run: Run) -> None:
        self.__dict__['_run'], self.__dict__['_values'] = run, {}

    def update(self, config: ConfigLike, allow_val_change: bool | None = None) -> None:
        """Adds params.

        Args:
            config: A mapping, an argparse namespace, a dataclass or an object with attributes. Nested keys are joined by ".".
            allow_val_change: Accepted for W&B's sake; the first value of a key stays.

        Raises:
            TypeError: config is of another type.

        Example:
            >>> run.config.update({"lr": 0.1, "model": {"depth": 20}})
        """
        from dptrack import _values
        values = _values.as_mapping(config)
        for key in values:
            self._values.setdefault(str(key), values[key])
        for name, value in _values.flatten(values, '.'):
            self._run._record_param(name, _values.plain(value))

    def setdefault(self, key: str, value: Any) -> Any:
        if key not in self._values:
            self.update({key: value})
        return self._values[key]

    def __getattr__(self, key: str) -> Any:
        try:
            return self._values[key]
        except KeyError:
            raise AttributeError('the run has no param %r' % key) from None

    def __setattr__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> KeysView[str]:
        return self._values.keys()

    def items(self) -> ItemsView[str, Any]:
        return self._values.items()

    def get(self, key: str, otherwise: Any = None) -> Any:
        return self._values.get(key, otherwise)

    def as_dict(self) -> dict[str, Any]:
        return dict(self._values)

    def __repr__(self) -> str:
        return 'Config(%r)' % self._values


class Summary:
    """The newest value of each key, or its minimum or maximum by define_metric. Setting a number records a point at the last
    step; setting a text records a tag."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def update(self, values: ConfigLike) -> None:
        from dptrack import _values
        for key, value in _values.flatten(_values.as_mapping(values), '/'):
            self._run._record_summary(key, value)

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __getitem__(self, key: str) -> Any:
        return self._run._last[key]

    def __contains__(self, key: object) -> bool:
        return key in self._run._last

    def __iter__(self) -> Iterator[str]:
        return iter(self._run._last)

    def __len__(self) -> int:
        return len(self._run._last)

    def keys(self) -> KeysView[str]:
        return self._run._last.keys()

    def items(self) -> ItemsView[str, Any]:
        return self._run._last.items()

    def get(self, key: str, otherwise: Any = None) -> Any:
        return self._run._last.get(key, otherwise)

    def __repr__(self) -> str:
        return 'Summary(%r)' % dict(self._run._last)


class Run:
    """Created by init. Any thread may log; the points of one thread keep their order.

    Attributes:
        id: 32 hex digits; None while nothing is recorded.
        name: As given, or made from the id.
        dir: The run's folder.
        experiment: The experiment.
        segment: 0, and one more after each resume.
        rank: This process among those of the job.
        world_size: The number of processes.
        config: The params.
        summary: The newest value of each key.
    """

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        from dptrack._secrets import Pieces, Scrubber
        self.id: str | None = None
        self.name: str | None = None
        self.dir: str | None = None
        self.experiment, self.segment, self.rank, self.world_size = 'default', 0, rank, world_size
        self.config, self.summary = Config(self), Summary(self)
        self._state = OFF
        self._handle: Any = None
        self._options: dict[str, Any] = {}
        self._pending: list[tuple[str, tuple[Any, ...]]] = []
        self._after: list[Callable[[Run], object]] = []
        self._keys = _Keys()
        self._rows: dict[tuple[str, ...], _Row] = {}
        self._last: dict[str, Any] = {}
        self._step, self._process = 0, os.getpid()
        self._rules: dict[str, dict[str, str | None]] = {}
        self._said: set[str] = set()
        self._of_trainer = False  # a trainer's callback started it (_init.of_trainer)
        self._system_s = 0.0
        self._scrubber = Scrubber()
        self._pieces = {stream: Pieces(self._scrubber) for stream in (1, 2)}

    # ---- points ----

    def log(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Records values at a step. Only queues: never waits for a disk or network.

        Args:
            values: {key: number, text, dptrack.Image or another medium}. Keys of nested mappings are joined by "/". item() is
                called on tensors, which waits for the device. A value of another type is reported once on stderr and left out.
            step: The step, a whole number of 64 bits; default: the last one plus 1. Values at any other step are reported on
                stderr and left out; a fraction is cut off.

        Example:
            >>> run.log({"train/loss": 0.5, "eval": {"top1": 0.9}}, step=100)
        """
        if step is None:
            step = self._step + 1
        if type(step) is not int or not -2**63 <= step < 2**63:
            step = self._as_step(step)
            if step is None:
                return
        handle = self._handle
        if handle is None:
            handle = self._enter(step)
            if handle is None:
                return
        self._step = step
        try:
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
        except Exception as error:
            self._say_unlogged(values, step, error)

    def _say_unlogged(self, values: object, step: int, error: Exception) -> None:
        """Reports a row that is no mapping, or whose content raises an error."""
        from dptrack import _values
        if hasattr(values, 'items'):
            self._say_once('row %s' % type(error), 'not all values of step %d are recorded: %s: %s' % (step, type(error).__name__, _values.plain(error)))
        else:
            self._say_once('row', 'log at step %d records nothing: expected {key: number}, not %s' % (step, type(values).__name__))

    def _as_step(self, step: Any) -> int | None:
        """A step as a whole number of 64 bits, or None with a message."""
        try:
            whole = int(step)
        except (TypeError, ValueError, OverflowError):
            whole = 2**63
        if not -2**63 <= whole < 2**63:
            self._say_once('step', 'values at step %.100r are lost: expected a whole number of 64 bits' % (step,))
            return None
        if isinstance(step, float) and step != whole:
            self._say_once('fraction', 'step %r is recorded as %d: steps are whole numbers' % (step, whole))
        return whole

    def _say_once(self, kind: str, text: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            say(text)

    def _log_row(self, handle: Any, step: int, values: Mapping[str, Any]) -> None:
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

    def log_rank(self, values: Mapping[str, float], step: int) -> None:
        """Records numbers in the series of this rank; log of rank 0 records the run's series. Does not open a segment that waits
        for its first step.

        Args:
            values: {key: number}.
            step: The step.

        Example:
            >>> run.log_rank({"phase/forward": 0.01}, step=100)
        """
        handle, at = self._handle, self._as_step(step)
        if handle is not None and at is not None:
            for key, value in values.items():
                _shared['lib'].log_rank(handle, self.rank, at, self._keys[key], value)

    def log_next_step(self, key: str, value: Any) -> None:
        """Records one value at the next step of log without advancing the step."""
        if self._handle is not None:
            self._log_any(self._handle, self._step + 1, key, value)

    def _log_any(self, handle: Any, step: int, key: str, value: Any) -> None:
        from collections.abc import Mapping

        from dptrack import _values
        for name, leaf in _values.flatten(value, '/', '%s/' % (key,)) if isinstance(value, Mapping) else ((key, value),):
            number = _values.number(leaf)
            if number is not None:
                self._last[name] = number
                _shared['lib'].log(handle, step, self._keys[name], number)
            elif not isinstance(leaf, Mapping) or leaf:
                self._log_media(handle, step, name, leaf)

    def _log_media(self, handle: Any, step: int, key: str, value: Any) -> None:
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
        else:
            why = ('exceeds a double' if isinstance(value, int) else 'is nested too deep, or contains itself' if hasattr(value, 'keys') else
                   'is neither a number nor media')
            self._say_once('value of %s' % (key,), 'values of "%s" are lost: %s %s' % (key, type(value).__name__, why))

    def _log_defined(self, values: Mapping[str, Any], step: int) -> None:
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
            if rule['summary'] in ('min', 'max') and key in self._last:
                if kept is None:
                    self._record('tag', self._keys['dptrack.best.' + key], utf8(rule['summary']))
                else:
                    self._last[key] = (min if rule['summary'] == 'min' else max)(kept, self._last[key])

    def _step_of(self, rule: dict[str, str | None], flat: dict[str, Any], step: int) -> int:
        from dptrack import _values
        key = rule['step_metric']
        if not key:
            return step
        at = _values.number(flat.get(key, self._last.get(key)))
        return int(at) if at is not None and at.is_integer() and -2**63 <= at < 2**63 else step

    def _rule(self, key: str) -> dict[str, str | None] | None:
        import fnmatch
        if key in self._rules:
            return self._rules[key]
        found = next((rule for name, rule in self._rules.items() if '*' in name and fnmatch.fnmatchcase(key, name)), None)
        return found if found is None or found['step_metric'] != key else None

    def define_metric(self, name: str, step_metric: str | None = None, summary: str | None = None) -> None:
        """Sets where the steps of a key come from, and which of its values is best.

        Args:
            name: A key, or a pattern with *.
            step_metric: The key whose integer values are its steps (epochs); default: the step of log.
            summary: "min" or "max": the value that run.summary holds, and that is best on the page, for the commands and for agents.
                Default: run.summary holds the last, and the best is known by the key.

        Example:
            >>> run.define_metric("val/*", step_metric="epoch", summary="max")
        """
        self._rules[str(name)] = {'step_metric': step_metric, 'summary': summary}

    # ---- records that are not points ----

    def alert(self, title: str, text: str = '', level: str = 'info') -> None:
        """Records an alert, which the server shows and may post to a chat.

        Args:
            title: A line.
            text: More, if needed.
            level: "info", "warning" or "error".

        Example:
            >>> run.alert("Accuracy fell", "from 91 % to 40 %", level="warning")
        """
        levels = {'info': 1, 'warning': 2, 'warn': 2, 'error': 3}
        hidden, word = self._scrubber.text, str(getattr(level, 'value', level)).lower()
        if word not in levels:
            self._say_once('level', 'alert level %r is recorded as info: expected info, warning or error' % word)
        self._record('alert', levels.get(word, 1), self._step,
                   utf8(hidden(str(title))) or b'alert', utf8(hidden(str(text))))

    def printed(self, stream: int, text: object) -> None:
        """Records console output; called by _console."""
        handle = self._handle
        if handle is not None and isinstance(text, str):
            self._print(handle, stream, self._pieces[stream].add(text))

    def _print(self, handle: Any, stream: int, text: str) -> None:
        if text:
            encoded = text.encode('utf-8', 'replace')
            _shared['lib'].console(handle, stream, encoded, len(encoded))

    def code(self, name: str, text: str) -> None:
        """Records a part of the code state.

        Args:
            name: "commit", "branch", "remote", "diff", "packages", or any other.
            text: Its content, at most 1 MiB.

        Example:
            >>> run.code("schedule.yaml", open("schedule.yaml").read())
        """
        self._record('code', self._keys[name], utf8(self._scrubber.text(text)))

    def keep(self, file: File | str | os.PathLike[str]) -> None:
        """Copies a file into the run; log does the same.

        Args:
            file: The file, or its path.

        Example:
            >>> run.keep(dptrack.File("model.pt"))
        """
        if self._handle is None and self._enter(None) is None:
            return
        from dptrack import _media
        if not isinstance(file, _media.File):
            file = _media.File(file)
        why = file.wrong_name()
        if why:
            say('file "%s" is not kept: %s' % (file.name, why))
        else:
            _shared['lib'].file(self._handle, file.name.encode(), os.fsencode(file.path))

    def tag(self, key: str, value: object = '') -> None:
        """Sets a tag.

        Args:
            key: The tag.
            value: Its value, stored as text; the last one is kept.

        Example:
            >>> run.tag("team", "vision")
        """
        self._record('tag', self._keys[key], utf8(self._scrubber.setting(str(key), str(value))))

    def note(self, markdown: str) -> None:
        """Sets the run's note.

        Args:
            markdown: The note, at most 64 KiB; the last one is kept.

        Example:
            >>> run.note("The **new** schedule.")
        """
        self._record('note', utf8(self._scrubber.text(str(markdown))))

    def _record_param(self, name: str, value: Any) -> None:
        value = self._scrubber.setting(name, value)
        if isinstance(value, bool):
            self._record('param_bool', self._keys[name], value)
        elif isinstance(value, int) and -2**63 <= value < 2**63:
            self._record('param_i64', self._keys[name], value)
        elif isinstance(value, float):
            self._record('param_f64', self._keys[name], value)
        else:
            self._record('param', self._keys[name], utf8(value))

    def _record_summary(self, key: str, value: Any) -> None:
        from dptrack import _values
        number = _values.number(value)
        if number is None:
            self.tag(key, _values.plain(value))
        elif self._handle is not None or self._enter(None) is not None:
            self._log_any(self._handle, self._step, key, number)

    def _record(self, name: str, *arguments: Any) -> None:
        if self._handle is not None:
            getattr(_shared['lib'], name)(self._handle, *arguments)
        elif self._state == WAITING:
            self._pending.append((name, arguments))

    def flush(self, wait_s: float = 10.0) -> bool:
        """Waits until all records so far are in the journal.

        Args:
            wait_s: The longest wait in seconds.

        Returns:
            False if they are not there after wait_s, or the disk refuses them.

        Example:
            >>> run.flush()
            True
        """
        return self._handle is not None and bool(_shared['lib'].flush(self._handle, wait_s) == 0)

    @property
    def dropped(self) -> int:
        """Number of points lost so far."""
        return int(_shared['lib'].dropped(self._handle)) if self._handle is not None else 0

    # ---- start and end ----

    def _prepare(self, options: dict[str, Any], open_now: bool) -> None:
        self._options, self._state = options, WAITING
        if open_now:
            self._open()

    def _open(self) -> None:
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

    def _watch_machine(self, lib: Library, handle: Any) -> None:
        from dptrack import _environment
        uuid = _environment.gpu_uuid()
        if uuid:
            lib.gpu(handle, uuid.encode())
        lib.system(handle, self._system_s)

    def _enter(self, step: int | None) -> Any:
        """Opens a run that waits for its first step. Returns the handle, or None with a message: nothing is recorded then."""
        if self._state == WAITING:
            first = self._step + 1 if step is None else int(step)
            self._options.update(first_step=first)
            try:
                self._open()
            except Error as error:
                say('nothing is recorded: %s' % error)
        elif self._state == FORKED:
            self._say_once('fork', 'run %s belongs to process %d; nothing of process %d is recorded: call dptrack.init there' %
                           (self.name, self._process, os.getpid()))
        elif self._state == CLOSED:
            self._say_once('closed', 'run %s is finished: what is logged now is lost' % self.name)
        return self._handle

    def finish(self, status: str | None = None, reason: str | None = None) -> None:
        """Writes what is queued and the status; waits for the disk, and some seconds for a server. A second call does nothing.

        Args:
            status: "finished" (default), "failed", "killed" or "preempted".
            reason: One line on why.

        Raises:
            ValueError: The status is unknown.

        Example:
            >>> run.finish("killed", "the loss is not finite")
        """
        from dptrack import _atexit
        status = status or 'finished'
        codes = {status: 0}
        if self._state in (OPEN, WAITING):
            library()
            codes = _shared['module'].STATUS
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

    def _close(self, handle: Any, status: str, reason: str | None) -> None:
        lib, codes = _shared['lib'], _shared['module'].STATUS
        for stream, pieces in self._pieces.items():
            self._print(handle, stream, pieces.rest())
        text = utf8(self._scrubber.text(reason)) if reason else None
        if self.rank > 0:
            lib.run_close(handle, codes['running'])
            if status == 'failed':
                self._fail_job(codes[status], 'rank %d: %s' % (self.rank, reason))
            return
        if text:
            lib.set_status(handle, codes[status], text)
        lib.run_close(handle, codes[status])

    def _fail_job(self, code: int, reason: str) -> None:
        """Records that this rank failed, which ends the job. Only rank 0 and the launcher may set the run's status, so it is
        written as a launcher's journal."""
        import ctypes
        lib, module = _shared['lib'], _shared['module']
        handle = ctypes.c_void_p()
        options = dict(self._options, role=module.LAUNCHER, rank=0, segment=self.segment)
        if not lib.run_open(ctypes.byref(handle), ctypes.byref(module.Options(warn=_shared['warn'], **options)), None):
            lib.set_status(handle, code, utf8(self._scrubber.text(reason)))
            lib.run_close(handle, code)

    def forked(self) -> None:
        """Called in a forked child: the run remains with the parent."""
        if self._handle is not None or self._state == WAITING:
            self._handle, self._state = None, FORKED

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        from dptrack import _atexit
        self.finish(*_atexit.judge(kind, value))

    def _repr_html_(self) -> str:
        """The run in a notebook."""
        from dptrack import _notebook
        return _notebook.of_active(self)

    def __repr__(self) -> str:
        return 'Run(%r, id=%r, %s)' % (self.name, self.id, self._state)


def init(experiment: str | None = None, run_name: str | None = None, config: ConfigLike = None, tags: TagsLike = None,
         runs_dir: str | os.PathLike[str] | None = None, notes: str | None = None, run_id: str | None = None,
         resume: bool | str | None = None, first_step: int | None = None, rank: int | None = None, world_size: int | None = None,
         url: str | None = None, mode: str | None = None, project: str | None = None, name: str | None = None,
         console: bool | None = None, code: bool | None = None, system: float | str | None = None) -> Run:
    """Starts a run and makes it the active one; finishes the run that was active.

    Args:
        experiment: The experiment; default: $DPTRACK_EXPERIMENT, or "default".
        run_name: The run's name; default: one made from its id.
        config: Params: a mapping, an argparse namespace, a dataclass or an object with attributes.
        tags: A mapping, or words.
        runs_dir: The folder of runs; default: $DPTRACK_RUNS_DIR, or "runs".
        notes: A note in Markdown.
        run_id: 32 hex digits. An existing run is resumed as a new segment, which hides older points from first_step on.
        resume: "auto" resumes the newest run named run_name, if any; True requires the run run_id to exist.
        first_step: The first step after a resume; default: the first one that is logged.
        rank: This process of the job; default: from torch.distributed, or the variables of torchrun, Slurm or mpirun.
        world_size: The number of processes; default: as for rank.
        url: A server that also receives the run; default: $DPTRACK_URL.
        mode: "disabled" records nothing; default: $DPTRACK_MODE, or "online".
        project: Another name for experiment.
        name: Another name for run_name.
        console: False does not record what the program prints; default: $DPTRACK_CONSOLE, or True.
        code: False does not record commit, diff and packages; default: $DPTRACK_CODE, or True.
        system: Seconds between samples of the machine's load (system/..., by rank), 0: none; default: $DPTRACK_SYSTEM, or 5.

    Returns:
        The run. It is also a context manager, which finishes it.

    Raises:
        Error: The run cannot be started: no space, a run to resume that does not exist, an option out of range.
        OSError: The library that DPTRACK_LIBRARY names cannot be loaded.

    Example:
        >>> with dptrack.init(experiment="mnist", config={"lr": 0.1}) as run:
        ...     run.log({"train/loss": 0.5}, step=1)
    """
    from dptrack import _init
    previous = active()
    if previous is not None:
        previous.finish()
    run = _init.begin(Run, experiment=experiment, run_name=run_name, config=config, tags=tags, runs_dir=runs_dir, notes=notes, run_id=run_id,
                      resume=resume, first_step=first_step, rank=rank, world_size=world_size, url=url, mode=mode, project=project, name=name,
                      console=console, code=code, system=system)
    _active.append(run)
    return run

# SPDX-License-Identifier: Apache-2.0
"""Exit hooks that give runs the right status: an uncaught exception, sys.exit with a code, the end of a multiprocessing child,
a fork. Calls only finish and forked of a run."""
from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any, NoReturn

    from dptrack._run import Run

_runs: list[Run] = []
_state: dict[str, Any] = {'process': None, 'status': None, 'reason': None}


def watch(run: Run) -> None:
    """Finishes the run when the process ends."""
    _hook()
    _runs.append(run)


def forget(run: Run) -> None:
    if run in _runs:
        _runs.remove(run)


def judge(kind: type[BaseException] | None, value: object) -> tuple[str, str | None]:
    """(status, reason) for an exception that ends a program."""
    if kind is None:
        return 'finished', None
    if issubclass(kind, KeyboardInterrupt):
        return 'killed', 'KeyboardInterrupt'
    if issubclass(kind, SystemExit):
        code = getattr(value, 'code', value)
        return ('finished', None) if code in (None, 0) else ('failed', 'exit %s' % (code,))
    text = str(value).strip().split('\n')[0]
    return 'failed', '%s: %s' % (kind.__name__, text) if text else kind.__name__


def _finish_all() -> None:
    if _state['status'] is None and sys.version_info >= (3, 13):
        _state['status'], _state['reason'] = judge(SystemExit, _code_of_child())
    for run in list(_runs):
        run.finish(_state['status'], _state['reason'])


def _finish_child() -> None:
    """Before Python 3.13 the exception that ends a child of multiprocessing is still active here; later, _hook_child kept it, and
    an exit code is known by the frame that passes it on."""
    kind, value = sys.exc_info()[:2]
    if kind is not None or sys.version_info < (3, 13):
        _state['status'], _state['reason'] = judge(kind, value)
    _finish_all()


def _code_of_child() -> int:
    """The exit code of a forked child whose exit functions run, from Python 3.13 on; else 0."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_locals.get('code')
        if isinstance(code, int) and _is_multiprocessing(frame):
            return code
        frame = frame.f_back
    return 0


def _is_multiprocessing(frame: FrameType) -> bool:
    return str(frame.f_globals.get('__name__')).startswith('multiprocessing.')


def _after_fork() -> None:
    for run in _runs:
        run.forked()
    del _runs[:]
    _state['status'] = _state['reason'] = None


def _hook_exceptions() -> None:
    before = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        _state['status'], _state['reason'] = judge(kind, value)
        before(kind, value, traceback)
        if sys.implementation.name == 'pypy' and issubclass(kind, KeyboardInterrupt) and not hasattr(sys, 'ps1'):
            _finish_all()  # no exit functions run after this one

    sys.excepthook = hook


def _hook_exit() -> None:
    before = sys.exit

    def hook(code: Any = None) -> NoReturn:
        if _state['status'] is None or not _is_multiprocessing(sys._getframe(1)):  # a spawned child exits so after an exception
            _state['status'], _state['reason'] = judge(SystemExit, code)
        before(code)

    sys.exit = hook


def _hook_child() -> None:
    """In a child of multiprocessing that opens a run."""
    util, process = sys.modules.get('multiprocessing.util'), sys.modules.get('multiprocessing.process')
    if util and process and getattr(process, 'parent_process', lambda: None)() is not None:
        util.Finalize(None, _finish_child, exitpriority=100)
        if sys.version_info >= (3, 13):
            _hook_print_exc()


def _hook_print_exc() -> None:
    """Keeps the exception that multiprocessing prints at the end of a child: its exit functions run after that."""
    import traceback
    before = traceback.print_exc

    def hook(*words: Any, **named: Any) -> None:
        if _is_multiprocessing(sys._getframe(1)):
            _state['status'], _state['reason'] = judge(*sys.exc_info()[:2])
        before(*words, **named)

    traceback.print_exc = hook


def _hook() -> None:
    """Installs the hooks once per process. A fork inherits all but the hook of a multiprocessing child."""
    before, _state['process'] = _state['process'], os.getpid()
    if before != _state['process']:
        _hook_child()
    if before is None:
        atexit.register(_finish_all)
        _hook_exceptions()
        _hook_exit()
        os.register_at_fork(after_in_child=_after_fork)

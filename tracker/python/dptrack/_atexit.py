# SPDX-License-Identifier: Apache-2.0
"""Exit hooks that give runs the right status: an uncaught exception, sys.exit with a code, the end of a multiprocessing child,
a fork. Calls only finish and forked of a run."""
from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
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
    for run in list(_runs):
        run.finish(_state['status'], _state['reason'])


def _finish_child() -> None:
    """Multiprocessing children exit without atexit; the exception is still active here."""
    kind, value = sys.exc_info()[:2]
    _state['status'], _state['reason'] = judge(kind, value)
    _finish_all()


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

    sys.excepthook = hook


def _hook_exit() -> None:
    before = sys.exit

    def hook(code: Any = None) -> NoReturn:
        _state['status'], _state['reason'] = judge(SystemExit, code)
        before(code)

    sys.exit = hook


def _hook_child() -> None:
    """In a child of multiprocessing that opens a run."""
    util, process = sys.modules.get('multiprocessing.util'), sys.modules.get('multiprocessing.process')
    if util and process and getattr(process, 'parent_process', lambda: None)() is not None:
        util.Finalize(None, _finish_child, exitpriority=100)


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

# SPDX-License-Identifier: Apache-2.0
"""Exit hooks that give runs the right status: an uncaught exception, sys.exit with a code, the end of a multiprocessing child,
a fork. Calls only finish and forked of a run."""
import atexit
import os
import sys

_runs = []
_state = {'process': None, 'status': None, 'reason': None}


def watch(run):
    """Finishes the run when the process ends."""
    _hook()
    _runs.append(run)


def forget(run):
    if run in _runs:
        _runs.remove(run)


def judge(kind, value):
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


def _finish_all():
    for run in list(_runs):
        run.finish(_state['status'], _state['reason'])


def _finish_child():
    """Multiprocessing children exit without atexit; the exception is still active here."""
    kind, value = sys.exc_info()[:2]
    _state['status'], _state['reason'] = judge(kind, value)
    _finish_all()


def _after_fork():
    for run in _runs:
        run.forked()
    del _runs[:]
    _state['status'] = _state['reason'] = None


def _hook_exceptions():
    before = sys.excepthook

    def hook(kind, value, traceback):
        _state['status'], _state['reason'] = judge(kind, value)
        before(kind, value, traceback)

    sys.excepthook = hook


def _hook_exit():
    before = sys.exit

    def hook(code=None):
        _state['status'], _state['reason'] = judge(SystemExit, code)
        before(code)

    sys.exit = hook


def _hook_child():
    """In a child of multiprocessing that opens a run."""
    util, process = sys.modules.get('multiprocessing.util'), sys.modules.get('multiprocessing.process')
    if util and process and getattr(process, 'parent_process', lambda: None)() is not None:
        util.Finalize(None, _finish_child, exitpriority=100)


def _hook():
    """Installs the hooks once per process. A fork inherits all but the hook of a multiprocessing child."""
    before, _state['process'] = _state['process'], os.getpid()
    if before != _state['process']:
        _hook_child()
    if before is None:
        atexit.register(_finish_all)
        _hook_exceptions()
        _hook_exit()
        os.register_at_fork(after_in_child=_after_fork)

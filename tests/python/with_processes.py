# SPDX-License-Identifier: Apache-2.0
"""Notebooks, in a real Jupyter kernel: cells record, raise, are interrupted, fork; a kernel is killed and the notebook
runs again. Nothing is recorded twice, a kill loses at most a second. Run by tests/python/all in an environment with
nbclient and ipykernel."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402


class Notebook:
    """A kernel, in which cells are run one by one."""

    def __init__(self, folder):
        import jupyter_client
        self.manager = jupyter_client.KernelManager(kernel_name='python3')
        env = dict(lib.environment(os.path.join(folder, 'runs')), IPYTHONDIR=folder, JUPYTER_RUNTIME_DIR=folder)
        self.manager.start_kernel(env=env, cwd=folder)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=lib.LIMIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop_channels()
        if self.manager.is_alive():
            self.manager.shutdown_kernel()

    def cell(self, code):
        """Returns (what it printed, the name of the exception or None)."""
        for _ in range(50):
            printed = []
            reply = self.client.execute_interactive(code, timeout=lib.LIMIT_S, allow_stdin=False,
                                                    output_hook=lambda m: printed.append(m['content'].get('text', '')))
            if reply['content']['status'] != 'aborted':
                return ''.join(printed), reply['content'].get('ename')
            time.sleep(0.1)  # cells queued after an interrupted one are not run
        raise AssertionError('the kernel takes no cell')

    def begin(self, code):
        """Starts a cell without waiting for it."""
        self.client.execute(code)

    def kill(self):
        self.manager.signal_kernel(9)


BEGIN = "import dptrack, os, time\nrun = dptrack.init(experiment='n', run_name='first', config={'lr': 0.1})\nprint('said in a cell')"
STEPS = "for step in range(1, 4):\n    dptrack.log({'x': float(step)}, step=step)"
SECOND = "dptrack.log({'x': 4.0}, step=4)\nrun = dptrack.init(experiment='n', run_name='second')\nrun.log({'y': 1.0})"


def cells_record(folder):
    """A cell that raises ends nothing; a second init ends the first run, the kernel's end the second."""
    runs = os.path.join(folder, 'runs')
    with Notebook(folder) as book:
        assert [book.cell(c)[1] for c in (BEGIN, STEPS, '1 / 0', SECOND)] == [None, None, 'ZeroDivisionError', None]
    first, second = lib.only(runs, 'first'), lib.only(runs, 'second')
    assert first.series('x') == [(s, float(s)) for s in range(1, 5)] and first.statuses == [(1, '')], (first.series('x'), first.statuses)
    assert second.series('y') == [(1, 1.0)] and second.statuses == [(1, '')] and b'said in a cell' in first.data, second.statuses
    assert b'said in a cell' not in second.data and len(lib.journals(runs)) == 2
    return 'two runs of four cells'


def an_interrupted_cell_continues(folder):
    with Notebook(folder) as book:
        book.cell(BEGIN)
        book.begin("for step in range(1, 10 ** 9):\n    run.log({'x': float(step)}, step=step)\n    time.sleep(0.01)")
        wait_for(lambda: series(folder))
        book.manager.interrupt_kernel()
        said, raised = book.cell("at = step\nfor step in range(at + 1, at + 4):\n    run.log({'x': float(step)}, step=step)\nrun.finish()\nprint(step)")
        assert raised is None, said
        last = int(said.strip().split('\n')[-1])
    steps = [s for s, _ in series(folder)]
    assert steps in (list(range(1, last + 1)), sorted(set(range(1, last + 1)) - {last - 3})), steps[-8:]  # interrupted while it logged
    assert lib.only(os.path.join(folder, 'runs'), 'first').statuses == [(1, '')]
    return '%d steps, each once' % len(steps)


def children_record_nothing(folder):
    """Forks of a cell, by hand and by a pool."""
    with Notebook(folder) as book:
        book.cell(BEGIN)
        book.cell(STEPS)
        said, raised = book.cell("""import multiprocessing
def work(n):
    dptrack.log({'x': 100.0 + n}, step=100 + n)
    print('of a child', n)
    return n
child = os.fork()
if not child:
    work(9)
    os._exit(0)
os.waitpid(child, 0)
with multiprocessing.get_context('fork').Pool(2) as pool:
    assert pool.map(work, range(4)) == [0, 1, 2, 3]
dptrack.log({'x': 4.0}, step=4)
dptrack.finish()""")
        assert raised is None, (raised, said)
    j = lib.only(os.path.join(folder, 'runs'))
    assert j.series('x') == [(s, float(s)) for s in range(1, 5)] and j.statuses == [(1, '')] and b'of a child' not in j.data, j.series('x')
    return 'five children'


def a_killed_kernel(folder):
    """At most a second of points is lost; the notebook run again is another run, or on request a segment of the
    first."""
    runs = os.path.join(folder, 'runs')
    resume = BEGIN.replace("config=", "resume='auto', config=")
    with Notebook(folder) as book:
        book.cell(resume)
        book.begin("step = 0\nwhile True:\n    step += 1\n    run.log({'x': time.time()}, step=step)\n    time.sleep(0.005)")
        wait_for(lambda: len(series(folder)) > 300)
        killed = time.time()
        book.kill()
    points = series(folder)
    assert [s for s, _ in points] == list(range(1, len(points) + 1)) and killed - points[-1][1] < 1, killed - points[-1][1]
    first = points[-1][0] + 1
    with Notebook(folder) as book:
        book.cell(resume)
        book.cell("for step in range(%d, %d):\n    run.log({'x': 0.0}, step=step)" % (first, first + 3))
        book.cell('run.finish()')
    before, after = lib.journals(runs, 'first')
    assert (before.header['run_id'], after.header['segment'], after.header['first_step']) == (after.header['run_id'], 1, first), after.header
    assert [s for s, _ in after.series('x')] == [first, first + 1, first + 2] and after.statuses == [(1, '')]
    return '%.2f s of points lost' % (killed - points[-1][1])


def series(folder):
    found = lib.journals(os.path.join(folder, 'runs'), 'first')
    return found[0].series('x') if found else []


def wait_for(true):
    until = time.monotonic() + lib.LIMIT_S / 2
    while not true():
        assert time.monotonic() < until, 'the condition was not met in time'
        time.sleep(0.1)


if __name__ == '__main__':
    lib.choose(cells_record, an_interrupted_cell_continues, children_record_nothing, a_killed_kernel)

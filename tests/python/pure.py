#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client without compiled code (DPTRACK_PURE=1): the tests of recording pass with it, its journals equal the compiled client's
record for record, a kill loses no point that log has recorded, a server gets all of it, and pip installs it where there is no
compiler. DPT_TEST_FULL=1: also under the oldest and the newest other Python of this machine, and PyPy. PyPy writes the same records."""
import ast
import contextlib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import interpreters  # noqa: E402
import lib  # noqa: E402

sys.path.insert(0, os.path.join(lib.SRC, 'tests'))
from serving import Serving  # noqa: E402

SCRIPTS = ('runs.py', 'told.py', 'media.py', 'ranks.py')
PYPY = [path for path in [shutil.which('pypy3')] if path]

EVERYTHING = r"""
    import dptrack, math, os, struct
    with open('file.bin', 'wb') as f:
        f.write(bytes(range(256)) * 9000)
    odd = [struct.unpack('<d', struct.pack('<Q', bits))[0] for bits in (0x7ff8000000000000, 0xfff8000000000000, 0x7ff8dead00000000, 1, 0x8000000000000000)]
    run = dptrack.init(experiment='e/x \u00fc', run_name='n', run_id='0123456789abcdef' * 2, config={'lr': 0.1, 'n': 3, 'big': 2**62, 'b': True,
                       't': 'x\u00fc', 'nan': math.nan, 'd': {'e': -5}}, tags={'k': 'v', 'long': 'y' * 9000}, notes='# note', system=0, code=False)
    run.config.update({'lr': 0.2})
    for step in (0, 1, 2**40, -3):
        run.log({'loss': 1 / 3, 'whole': 0.5, 'key \u00fc': 1e300, 'inf': -math.inf, 'i': 7, **{'odd/%d' % n: x for n, x in enumerate(odd)}}, step=step)
    run.log({'c' * 251: 2.0, 'c' * 250: 2.0}, step=5)
    run.log_rank({'phase': 1.5}, step=2)
    run.flush()
    run.config.update({'late': 1.5})
    run.log({'text': dptrack.Text('**x**'), 'h': dptrack.Histogram(np_histogram=([1, 0, 4], [-1, 0, 0.5, 2])), 'table': dptrack.Table(columns=['a', 'b'], data=[[1, 2]]),
             'sound': dptrack.Audio(b'RIFF\0\0\0\0WAVE'), 'film': dptrack.Video(b'\x1a\x45\xdf\xa3film'), 'file': dptrack.File('file.bin', 'a/b.bin'),
             'picture': dptrack.Image(bytes.fromhex('89504e470d0a1a0a0000000d4948445200000003000000020802000000'), caption='c')}, step=6)
    run.alert('title', 'text \u00fc', level='error')
    print('out\rput\nsecond')
    print('x' * 40000)
    run.code('part', 'z' * 100)
    run.finish('failed', 'because')
    """


def plain(record):
    # Without what differs between two runs: the event's time, writer, host and process of a header, the time of hparams.
    fields = list(lib.journal.fields(record))
    found = []
    for number, value in fields[1:]:
        if number == 1001:
            value = [(n, v) for n, v in lib.journal.fields(value) if n not in (3, 11, 12, 13)]
        elif number == 5 and b'_hparams_' in value:
            value = re.sub(rb'[\x11\x29].{8}$', b'', value, flags=re.S)
        found.append((number, value))
    return found


def its_tests(folder):
    """The scripts of recording; python: of this version."""
    pythons = [sys.executable]
    if os.environ.get('DPT_TEST_FULL') == '1':
        found = interpreters.interpreters()
        pythons += [found[v] for v in {choose(found, key=interpreters.minor_of) for choose in (min, max) if found}] + PYPY
    for python in pythons:
        for script in SCRIPTS:
            done = subprocess.run([python, os.path.join(lib.SRC, 'tests', 'python', script)], env=dict(os.environ, DPTRACK_PURE='1', srcdir=lib.SRC, builddir=lib.BUILD),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=lib.LIMIT_S)
            assert done.returncode in (0, 77), '%s with %s:\n%s' % (script, python, (done.stdout + done.stderr)[-3000:])
    return '%s under %d Pythons' % (', '.join(SCRIPTS), len(pythons))


def the_same_records(folder):
    """Bit for bit and in the same order among themselves: points, and what else is recorded."""
    found, said = [], []
    writers = [('0', sys.executable), ('1', sys.executable), *(('1', path) for path in PYPY)]
    for n, (pure, python) in enumerate(writers):
        os.mkdir(os.path.join(folder, str(n)))
        runs = os.path.join(folder, str(n), 'runs')
        process = lib.start(runs, EVERYTHING, python=python, DPTRACK_PURE=pure)
        err = process.communicate(timeout=lib.LIMIT_S)[1]
        assert process.returncode == 0, err
        said.append(sorted(err.splitlines()))
        j = lib.only(runs)
        records = [plain(p) for p in j.payloads]
        points = [r for r in records if r and r[-1][0] == 5 and b'_hparams_' not in repr(r[-1]).encode() and len(r) <= 2]
        lines = [[(n, v) for n, v in lib.journal.fields(line) if n != 2] for r in records for number, value in r if number == 1009
                 for _, line in lib.journal.fields(value) if (1, 1) in lib.journal.fields(line)]  # without warnings
        others = sorted(repr(r) for r in records if r not in points and r and r[0][0] not in (1004, 1007, 1009))
        found.append((points, [*others, *map(repr, lines)], os.path.basename(os.path.dirname(j.path))))
        with open(os.path.join(os.path.dirname(j.path), 'files', 'a', 'b.bin'), 'rb') as f:
            assert f.read() == bytes(range(256)) * 9000
    points, others, place = found[0]
    for pure_points, pure_others, pure_place in found[1:]:
        assert len(points) > 40 and sorted(map(repr, points)) == sorted(map(repr, pure_points)), set(map(repr, points)) ^ set(map(repr, pure_points))
        assert len(others) > 15 and others == pure_others, [text[:300] for text in set(others) ^ set(pure_others)]
        assert place == pure_place, (place, pure_place)
    assert all(lines == said[0] for lines in said), said
    return '%d points, %d other records, %d writers' % (len(points), len(others), len(writers))


def the_same_checksums(folder):
    """Of lengths around those from which another algorithm is used, and of large media."""
    sys.path.insert(0, lib.PACKAGE)
    from dptrack.pure import records
    for n in (*range(70), *range(2040, 2060), 4095, 4096, 8192, 16385, 65536, 300001):
        data = os.urandom(n)
        assert records.frame(data) == struct.pack('<QI', n, lib.journal.masked_crc(struct.pack('<Q', n))) + data + struct.pack('<I', lib.journal.masked_crc(data)), n


def a_kill_loses_nothing(folder):
    """Every point that log has recorded is in the file."""
    runs = folder + '/runs'
    process = lib.start(runs, '''
        import dptrack, os
        run = dptrack.init(run_name='killed', system=0, console=False, code=False)
        step = 0
        while True:
            step += 1
            run.log({'a': 1.0, 'b': 2.0}, step=step)
            os.write(1, b'%d\\n' % step)
        ''', DPTRACK_PURE='1')
    first = process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    last = int((first + process.stdout.read()).split('\n')[-2])
    process.wait()
    j = lib.only(runs, 'killed')
    for key in ('a', 'b'):
        steps = [step for step, _ in j.series(key)]
        assert steps == list(range(1, len(steps) + 1)) and len(steps) in (last, last + 1), (len(steps), last)
    return '%d rows' % last


def an_interrupt_doubles_nothing(folder):
    """A signal whose handler logs, and one that raises, at any place of log."""
    runs = folder + '/runs'
    out, _ = lib.run(runs, '''
        import dptrack, signal
        run = dptrack.init(run_name='signals', system=0, console=False, code=False)
        def handler(*_):
            handler.n += 1
            n = handler.n
            run.log({'from handler': 1.0}, step=n)
            handler.logged.append(n)
            if n % 2 and handler.caught:
                handler.caught = False
                raise KeyboardInterrupt
        handler.n, handler.caught, handler.logged, logged = 0, False, [], []
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0013, 0.0013)
        step = 0
        while handler.n < 500:
            try:
                handler.caught = True
                while handler.n < 500:
                    step += 1
                    run.log({'x': 1.0}, step=step)
                    logged.append(step)
                handler.caught = False
            except KeyboardInterrupt:
                pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        run.finish()
        print(repr([logged, handler.logged]))
        ''', DPTRACK_PURE='1')
    j = lib.only(runs, 'signals')
    for key, logged in zip(('x', 'from handler'), ast.literal_eval(out)):
        steps = [step for step, _ in j.series(key)]
        assert len(steps) == len(set(steps)), 'points of %s are doubled' % key
        assert len(logged) > 100 and set(logged) <= set(steps), 'points of %s are lost: %s' % (key, set(logged) - set(steps))


def a_server_gets_it(folder):
    """Also one that starts late, and after a kill what the next run of the same id finds."""
    program = os.path.join(lib.BUILD, 'dptrack')
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as ends:
        first = Serving(program, '--logdir', place, '--port', '0')
        url = first.url
        first.stop()
        process = lib.start(folder + '/runs', '''
            import dptrack, sys, time
            run = dptrack.init(run_name='sent', url=sys.argv[1], system=0, code=False)
            with open('kept.txt', 'w') as f:
                f.write('kept')
            for step in range(3000):
                run.log({'x': float(step)}, step=step)
            run.keep('kept.txt')
            time.sleep(1)
            print('logged', flush=True)
            sys.stdin.readline()
            run.log({'x': -1.0}, step=3000)
            run.finish()
            ''', url, DPTRACK_PURE='1')
        for line in process.stdout:
            if line == 'logged\n':
                break
        server = Serving(program, '--logdir', place, '--port', url.rpartition(':')[2])
        ends.callback(server.process.kill)
        _, said = process.communicate('\n', timeout=lib.LIMIT_S)
        assert process.returncode == 0 and 'sent again later' in said, said
        run = lib.ask(server.url, 'runs')['runs'][0]
        sums = run['metrics']['x']
        assert (run['name'], run['status'], sums['count'], sums['last']) == ('sent', 'finished', 3001, -1), (run['status'], sums, said)
        assert [f['path'] for f in lib.ask(server.url, 'runs/%s/artifacts' % run['id'])['files']] == ['kept.txt'], said
        lib.run(folder + '/runs', '''
            import dptrack, os, sys
            run = dptrack.init(run_name='sent', resume='auto', url='', system=0, console=False, code=False)
            run.log({'x': 5.0}, step=4000)
            os._exit(0)
            ''', DPTRACK_PURE='1')
        lib.run(folder + '/runs', '''
            import dptrack, sys
            with dptrack.init(run_name='sent', resume='auto', url=sys.argv[1], system=0, console=False, code=False) as run:
                run.log({'x': 6.0}, step=4001)
            ''', server.url, DPTRACK_PURE='1')
        assert lib.ask(server.url, 'runs')['runs'][0]['metrics']['x']['count'] == 3003
        server.stop()


def a_full_disk_only_warns(folder):
    """What the disk refused is written once there is room."""
    lib.run(folder + '/runs', '''
        import dptrack, resource, signal, os
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        run = dptrack.init(run_name='full', system=0, console=False, code=False)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, hard))
        for step in range(2000):
            run.log({'x': 1.0}, step=step)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        run.finish()
        ''', DPTRACK_PURE='1')
    j = lib.only(folder + '/runs', 'full')
    assert [s for s, _ in j.series('x')] == list(range(2000)) and j.whole, 'all points, once'


def pip_installs_it(folder):
    """Without a compiler and without an installed library; serve says what it needs. A library that cannot be loaded is replaced, too."""
    venv = folder + '/venv'
    made = subprocess.run([sys.executable, '-m', 'venv', venv], capture_output=True, text=True)
    if made.returncode:
        return 'left out: no virtual environment'
    env = {k: v for k, v in os.environ.items() if not k.startswith(('PYTHONPATH', 'DPTRA'))}
    env.update(PIP_NO_INDEX='1', PIP_DISABLE_PIP_VERSION_CHECK='1', CC='/no/compiler', HOME=folder, PYTHONDONTWRITEBYTECODE='1', DPTRACK_RUNS_DIR=folder + '/runs',
               PATH=venv + '/bin:/usr/bin:/bin')
    done = subprocess.run([venv + '/bin/pip', 'install', '-q', lib.PACKAGE], capture_output=True, text=True, env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    code = 'import dptrack; run = dptrack.init(run_name="%s", system=0); run.log({"x": 0.5}); run.finish(); print(dptrack._run.library().__module__, dptrack.__file__)'
    done = subprocess.run([venv + '/bin/python', '-c', code % 'p'], capture_output=True, text=True, env=env, cwd=folder)
    module, _, path = done.stdout.rstrip().partition(' ')
    assert (module, done.stderr) == ('dptrack.pure', ''), done
    with open(os.path.join(os.path.dirname(path), 'libdptrack.so'), 'w') as f:
        f.write('of another processor')
    done = subprocess.run([venv + '/bin/python', '-c', code % 'q'], capture_output=True, text=True, env=env, cwd=folder)
    assert done.stderr.count('\n') == 1 and 'libdptrack.so' in done.stderr and done.stderr.endswith('recorded by Python alone, without statistics of the machine\n'), done
    for name in ('p', 'q'):
        assert lib.only(folder + '/runs', name).series('x') == [(1, 0.5)]
    done = subprocess.run([venv + '/bin/python', '-m', 'dptrack', 'serve'], capture_output=True, text=True, env=dict(env, PATH=venv + '/bin'), cwd=folder)
    assert done.returncode and done.stderr.count('\n') == 1 and 'only the Python client is installed' in done.stderr, done


if __name__ == '__main__':
    lib.choose(its_tests, the_same_records, the_same_checksums, a_kill_loses_nothing, an_interrupt_doubles_nothing, a_server_gets_it, a_full_disk_only_warns, pip_installs_it)

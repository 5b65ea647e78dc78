#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Console, code and alerts of a run, from Python through the journal to the server: lines as they were printed and
when, by rank and segment; the diff is git's own; a printed secret is hidden."""
import glob
import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
import parallel  # noqa: E402


class Server:
    def __init__(self, runs):
        self.process = subprocess.Popen([os.path.join(lib.BUILD, 'dptrack'), 'serve', '--logdir', runs, '--port', '0'],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def get(self, run_id, what='', **query):
        return lib.ask(self.url, 'runs/%s%s' % (run_id, what and '/' + what), **query)


def texts(reply):
    return [line['text'] for line in reply['lines']]


def lines_as_they_were_printed(folder):
    runs = folder + '/runs'
    before = time.time() * 1000
    out, err = lib.run(runs, '''
        import dptrack, logging, os, sys, time
        run = dptrack.init(run_name='speaks')
        print('to', 'out')
        print('in pieces ', end='')
        sys.stdout.write('and whole\\n\\n')
        logging.warning('by logging %s', os.environ['MY_TOKEN'])
        for part in range(301):
            sys.stderr.write('\\r%3d of 300' % part)
            time.sleep(0.005)
        sys.stderr.write('\\n')
        sys.stdout.write('windows\\r\\n')
        print('a' + 'ü' * 9000)
        for n in range(20000):
            print('line', n)
        print('not ended', end='')
        run.finish()
        print('behind the end')
        ''', MY_TOKEN='t0ps3cret-value')
    assert 'behind the end' in out and 't0ps3cret-value' in err, 'printed output is unchanged'
    run_id = lib.only(runs).header['run_id']
    assert b't0ps3cret' not in lib.only(runs).data
    with Server(runs) as server:
        all_lines = server.get(run_id, 'console', limit=50000)['lines']
        printed = [(x['stream'], x['text']) for x in all_lines if not x.get('again')]
        wide = 'a' + 'ü' * 8191
        assert printed == [('stdout', 'to out'), ('stdout', 'in pieces and whole'), ('stdout', ''),
                           ('stderr', 'WARNING:root:by logging (hidden)'), ('stderr', '300 of 300'), ('stdout', 'windows'),
                           ('stdout', wide), ('stdout', 'ü' * (9000 - 8191)),
                           *(('stdout', 'line %d' % n) for n in range(20000)), ('stdout', 'not ended')], printed[:9]
        again = [x['text'] for x in all_lines if x.get('again')]
        assert 2 <= len(again) <= 10 and again == sorted(again), again
        assert [x['n'] for x in all_lines] == list(range(len(all_lines)))
        times = [x['time'] for x in all_lines]
        assert before - 1000 < times[0] and times[-1] < time.time() * 1000 + 1000 and times[4] - times[0] < 60000
        total = len(all_lines)
        reply = server.get(run_id, 'console', **{'from': -3})
        assert reply['total'] == total and texts(reply) == ['line 19998', 'line 19999', 'not ended']
        assert reply['parts'] == [{'rank': 0, 'segment': 0, 'lines': total}]
        assert texts(server.get(run_id, 'console', **{'from': total - 5, 'limit': 2})) == ['line 19996', 'line 19997']
        assert texts(server.get(run_id, 'console', search='line 1999', limit=3)) == ['line 1999', 'line 19990', 'line 19991']
        assert server.get(run_id, 'console', search='line 1999', limit=3)['lines'][1]['n'] == total - 11
        at = all_lines[total // 2]
        found = server.get(run_id, 'console', at=at['time'], limit=1)['lines'][0]
        assert found['time'] <= at['time'] and found['n'] >= at['n'], (found, at)


def by_rank_and_segment(folder):
    runs = folder + '/runs'
    program = '''
        import dptrack, sys
        run = dptrack.init(run_name='r')
        run.log({'x': 1.0}, step=int(sys.argv[1]))
        print('rank', run.rank, 'from', sys.argv[1])
        '''
    for attempt, first in enumerate(('1', '6')):
        ps = [lib.start(runs, program, first, RANK=str(r), WORLD_SIZE='2', MASTER_ADDR='h', MASTER_PORT='1', TORCHELASTIC_RUN_ID='x',
                        TORCHELASTIC_RESTART_COUNT=str(attempt)) for r in (0, 1)]
        assert all(p.communicate(timeout=60) and p.returncode == 0 for p in ps)
    run_id = lib.journals(runs)[0].header['run_id']
    with Server(runs) as server:
        reply = server.get(run_id, 'console')
        assert (reply['rank'], reply['segment'], texts(reply)) == (0, 1, ['rank 0 from 6']), reply
        assert [(p['rank'], p['segment']) for p in reply['parts']] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert texts(server.get(run_id, 'console', rank=1, segment=0)) == ['rank 1 from 1']
        nothing = server.get(run_id, 'console', rank=7)
        assert nothing['lines'] == [] and nothing['total'] == 0


def code_and_alerts(folder):
    runs = folder + '/runs'
    program = '''
        import dptrack
        run = dptrack.init(run_name='%s')
        run.log({'x': 1.0}, step=7)
        run.alert('loss is high', 'it is 3.2', level='warning')
        dptrack.alert('done')
        %s
        '''
    git = ['git', '-C', folder, '-c', 'user.name=n', '-c', 'user.email=e@x']
    lib.run(runs, program % ('plain', ''))
    with open(folder + '/lib.py', 'w') as f:
        f.write('rate = 1\n')
    for words in (['init', '-q'], ['add', 'lib.py'], ['commit', '-qm', 'first'], ['remote', 'add', 'origin', 'https://u:passw0rd@h/r.git']):
        subprocess.run(git + words, check=True)
    with open(folder + '/lib.py', 'w') as f:
        f.write('rate = 2\n')
    lib.run(runs, program % ('changed', '# one line more'))
    diff = subprocess.run(git + ['diff', '--no-color', 'HEAD'], capture_output=True, text=True, check=True).stdout
    commit = subprocess.run(git + ['rev-parse', 'HEAD'], capture_output=True, text=True, check=True).stdout.strip()
    with Server(runs) as server:
        plain, changed = (server.get(lib.only(runs, n).header['run_id'], 'code')['code'] for n in ('plain', 'changed'))
        by_name = {c['name']: c['text'] for c in changed}
        assert by_name['diff'] == diff and '+rate = 2' in diff and by_name['commit'] == commit
        assert by_name['remote'] == 'https://(hidden)@h/r.git', by_name['remote']
        assert 'diff' not in {c['name'] for c in plain} and {c['segment'] for c in plain + changed} == {0}
        assert [c['text'] for c in plain if c['name'] == 'packages'] == [by_name['packages']]
        alerts = server.get(lib.only(runs, 'plain').header['run_id'], 'alerts')['alerts']
        assert [(a['level'], a['title'], a['text'], a['step'], a['rank']) for a in alerts] == \
            [('warning', 'loss is high', 'it is 3.2', 7, 0), ('info', 'done', '', 7, 0)], alerts


def excluded_on_request(folder):
    runs = folder + '/runs'
    lib.run(runs, '''
        import dptrack
        run = dptrack.init(console=False, code=False)
        print('not recorded')
        ''')
    data = lib.only(runs).data
    assert b'not recorded' not in data and b'packages' not in data


def the_machine_is_measured(folder):
    """System statistics by rank with the newest step, once more at the end; not where disabled."""
    if os.environ.get('DPTRACK_PURE') == '1':
        return 'left out: not without compiled code'
    runs = folder + '/runs'
    code = """
        import dptrack, sys, time
        run = dptrack.init(run_name=sys.argv[1], **({'system': float(sys.argv[2])} if len(sys.argv) > 2 else {}))
        run.log({'x': 1.0}, step=7)
        begin = time.perf_counter()
        while time.perf_counter() < begin + 0.5:
            pass
        """
    lib.run(runs, code, 'default')
    lib.run(runs, code, 'often', '0.1')
    lib.run(runs, code, 'asked', '0')
    lib.run(runs, code, 'told', DPTRACK_SYSTEM='0')
    keys = {name: {(p[0], p[1]) for p in lib.only(runs, name).points} for name in ('default', 'often', 'asked', 'told')}
    assert ('system/cpu_percent', 0) in keys['default'] and ('system/memory_bytes', 0) in keys['default'], keys['default']
    assert keys['asked'] == keys['told'] == {('x', -1)}, keys
    often = lib.only(runs, 'often').series('system/cpu_percent', 0)
    assert len(often) >= 2 and {step for step, _ in often} == {7} and all(0 <= v <= 101 for _, v in often), often
    _, err = lib.run(runs, "import dptrack; dptrack.init(system=0.01)", status=1)
    assert 'system (DPTRACK_SYSTEM) is 0.01: expected seconds, at least 0.1, or 0 to disable' in err, err


def files_are_kept(folder):
    """Saved next to the journals, where the server lists them; after an upload they are artifacts. A copy, independent
    of the original file."""
    runs, far = folder + '/runs', folder + '/far'
    code = """
        import dptrack, os
        with dptrack.init(experiment='f', run_name='keeps') as run:
            for n in range(2):
                with open('weights.pt', 'wb') as f:
                    f.write(b'%d' % n * 100000)
                run.log({'loss': 1.0 / (n + 1), 'weights': dptrack.File('weights.pt', name='step %d/ü.pt' % n)})
            run.log({'last': dptrack.File('weights.pt')})
            os.unlink('weights.pt')
            for name in ('../out', '/abs', 'a//b', 'nul\\0', 'back\\\\slash'):
                open('small', 'w').close()
                run.log({'bad': dptrack.File('small', name=name)})
        try:
            dptrack.File('absent')
        except FileNotFoundError as error:
            print(error)
        """
    out, err = lib.run(runs, code)
    assert 'there is no file absent' in out and err.count('is not kept: parts divided by single slashes') == 5, (out, err)
    run_id, place = lib.only(runs).header['run_id'], os.path.dirname(lib.only(runs).path)
    assert open(place + '/files/step 0/ü.pt', 'rb').read() == b'0' * 100000 and open(place + '/files/weights.pt', 'rb').read() == b'1' * 100000
    with Server(runs) as server:
        listed = {f['path']: f['bytes'] for f in server.get(run_id, 'files', path='files')['files'] if not f['folder']}
        assert listed == {'files/weights.pt': 100000}, listed
        kept = {f['name']: (f['bytes'], f['sha256']) for f in server.get(run_id)['files']}
        assert kept == {name: (100000, hashlib.sha256(mark * 100000).hexdigest())
                        for name, mark in (('step 0/ü.pt', b'0'), ('step 1/ü.pt', b'1'), ('weights.pt', b'1'))}, kept
    os.makedirs(far)
    with Server(far) as server:
        _, err = lib.run(folder + '/sent', code, DPTRACK_URL=server.url)
        sent = lib.only(folder + '/sent').header['run_id']
        with urllib.request.urlopen('%s/api/v1/runs/%s/artifacts/%s' % (server.url, sent, urllib.parse.quote('step 1/ü.pt'))) as reply:
            assert reply.read() == b'1' * 100000
        assert 'server lacks' not in err and len(server.get(sent)['files']) == 3, err


def written_to(pid, part):
    """The file with `part` in its path to which the process has written; an unnamed one ends in " (deleted)"."""
    for fd in glob.glob('/proc/%d/fd/*' % pid):
        try:
            path = os.readlink(fd)
            if part in path and os.stat(fd).st_size:
                return path
        except FileNotFoundError:  # closed in the meantime
            pass
    return None


def a_copy_that_was_cut_off(folder):
    """A process is killed while it copies a file: the copy is absent, or not listed."""
    runs = folder + '/runs'
    process = lib.start(runs, """
        import dptrack
        run = dptrack.init(run_name='cut', system=0)
        with open('large', 'wb') as f:
            f.truncate(3 << 30)
        run.log({'loss': 1.0, 'large': dptrack.File('large', name='in/large.bin')})
        """)
    until, path = time.monotonic() + 60, None
    while not path:
        assert process.poll() is None and time.monotonic() < until, 'the copy does not start'
        path = written_to(process.pid, '/files/in/')
    process.kill()
    process.communicate()
    left = [path for name in ('*', '.*') for path in glob.glob(runs + '/*/*/files/in/' + name)]
    assert left == ([] if path.endswith(' (deleted)') else [path]), left
    run_id = lib.only(runs, 'cut').header['run_id']
    with Server(runs) as server:
        assert server.get(run_id, 'files', path='files/in')['files'] == [], left
    assert not path.endswith('large.bin')


def a_reason_until_the_restart_succeeds(folder):
    runs = folder + '/runs'
    lib.run(runs, "import dptrack; run = dptrack.init(run_name='why'); run.log({'loss': 1.0}); run.finish('failed', 'no room left')")
    run_id = lib.only(runs, 'why').header['run_id']
    with Server(runs) as server:
        assert server.get(run_id)['status_reason'] == 'no room left', server.get(run_id)
        lib.run(runs, "import dptrack, sys; run = dptrack.init(run_id=sys.argv[1], resume=True); run.log({'loss': 0.5}); run.finish()", run_id)
        until = time.monotonic() + 60
        while server.get(run_id)['status'] != 'finished':
            assert time.monotonic() < until, server.get(run_id)
            time.sleep(0.1)
        assert 'status_reason' not in server.get(run_id), server.get(run_id)


def main():
    sys.exit(parallel.run([a_reason_until_the_restart_succeeds, files_are_kept, a_copy_that_was_cut_off, the_machine_is_measured, lines_as_they_were_printed, by_rank_and_segment, code_and_alerts, excluded_on_request]))


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs recorded from Python: logged data read back from the journal, every way a process can end gives its status,
forks and children record nothing twice, and a killed process loses at most a second."""
import http.server
import math
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
import parallel  # noqa: E402

FINISHED, FAILED, KILLED = 1, 2, 3


def everything_reads_back(folder):
    runs = folder + '/runs'
    _, err = lib.run(runs, '''
        import argparse, dataclasses, dptrack, math
        class Tensor:
            def item(self): return 0.25
        class Whole:
            def __float__(self): return 7.0
        run = dptrack.init(experiment='E', run_name='all', config={'lr': 0.1, 'n': 3, 'amp': True, 'opt': {'name': 'adam', 'betas': (0.9, 0.999)}},
                           tags={'team': 'a'}, notes='# hello')
        dptrack.config.update(argparse.Namespace(seed=7))
        dptrack.config['act'] = math.sin
        dptrack.config.lr = 5
        run.log({'a': 0.1})
        run.log({'a': 0.2, 'b': Tensor(), 'deep': {'c': 1, 'd': {'e': Whole()}}})
        run.log({'a': math.nan, 'b': math.inf}, step=10)
        dptrack.log({'a': True})
        run.log({'a': object(), 'b': -1})
        run.log({'p': 1.5, 'q': 2, 'r': 2.5}, step=20)
        run.log({'p': 2.5, 'q': 3, 'r': Tensor()}, step=21)
        run.log({'huge': 10 ** 400, 'q': 3.5, 'r': 9}, step=21)
        run.log({'p': 3.5, 'q': 4, 'r': 3.5}, step=22)
        run.summary['best'] = 0.75
        assert run.summary['a'] == 1.0 and run.summary['p'] == 3.5 and run.config.opt['name'] == 'adam'
        dptrack.tag('later', 'x')
        dptrack.finish()
        dptrack.finish()
        run.log({'a': 1})
        ''')
    j = lib.only(runs)
    assert j.header['experiment'] == 'E' and j.header['run_name'] == 'all' and j.statuses == [(FINISHED, '')]
    assert j.params == {'lr': 0.1, 'n': 3, 'amp': True, 'opt.name': 'adam', 'opt.betas': '[0.9, 0.999]', 'seed': 7, 'act': 'math.sin'}
    assert j.tags == {'team': 'a', 'later': 'x'} and j.notes == ['# hello']
    a = j.series('a')
    assert a[:2] == [(1, 0.1), (2, 0.2)] and a[2][0] == 10 and math.isnan(a[2][1]) and a[3:] == [(11, 1.0)], a
    assert j.series('b') == [(2, 0.25), (10, math.inf), (12, -1.0)], j.series('b')
    assert j.series('deep/c') == [(2, 1.0)] and j.series('deep/d/e') == [(2, 7.0)]
    assert j.series('p') == [(20, 1.5), (21, 2.5), (22, 3.5)] and j.series('q') == [(20, 2.0), (21, 3.0), (21, 3.5), (22, 4.0)]
    assert j.series('r') == [(20, 2.5), (21, 0.25), (21, 9.0), (22, 3.5)] and j.series('best') == [(22, 0.75)]
    said = err.strip().split('\n')
    assert len(said) == 4 and 'values of "huge" are lost' in err and 'values of "a" are lost: object is neither' in err and 'param "lr" already has another' in err, err
    assert 'is finished: what is logged now is lost' in said[-1], err


def steps_counted_by_another_key(folder):
    runs = folder + '/runs'
    lib.run(runs, '''
        import dptrack
        run = dptrack.init()
        run.define_metric('val/*', step_metric='epoch', summary='max')
        for step in range(1, 7):
            run.log({'train/loss': 1 / step}, step=step)
            if step % 2 == 0:
                run.log({'val/top1': [0, 60, 70, 65][step // 2], 'epoch': step // 2}, step=step)
        assert run.summary['val/top1'] == 70 and run.summary['train/loss'] == 1 / 6
        ''')
    j = lib.only(runs)
    assert j.series('val/top1') == [(1, 60.0), (2, 70.0), (3, 65.0)] and j.series('epoch') == [(2, 1.0), (4, 2.0), (6, 3.0)]
    assert [s for s, _ in j.series('train/loss')] == [1, 2, 3, 4, 5, 6]


ENDS = {'returns': ('pass', 0, (FINISHED, '')),
        'raises': ('raise ValueError("bad thing\\nmore")', 1, (FAILED, 'ValueError: bad thing')),
        'exits': ('import sys; sys.exit(3)', 3, (FAILED, 'exit 3')),
        'exits-0': ('import sys; sys.exit(0)', 0, (FINISHED, '')),
        'with': ('with dptrack.init(run_name="inner"): raise SystemExit(4)', 4, (FINISHED, '')),
        'interrupted': ('import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)', -2, (KILLED, 'KeyboardInterrupt'))}


def every_end_has_its_status(folder):
    runs = folder + '/runs'
    for name, (code, status, wanted) in ENDS.items():
        lib.run(runs, 'import dptrack\nrun = dptrack.init(run_name="%s")\nrun.log({"x": 1.0})\n%s\n' % (name, code), status=status)
        j = lib.only(runs, name)
        assert j.statuses[-1] == (wanted[0], '') and (not wanted[1] or j.statuses[0] == wanted), (name, j.statuses)
        assert j.series('x') == [(1, 1.0)]
    assert lib.only(runs, 'inner').statuses == [(FAILED, 'exit 4'), (FAILED, '')]


def forks_record_nothing_twice(folder):
    runs = folder + '/runs'
    _, err = lib.run(runs, '''
        import dptrack, os, sys
        run = dptrack.init(run_name='parent')
        run.log({'x': 1.0})
        if not os.fork():
            run.log({'x': 2.0})
            dptrack.log({'x': 3.0})
            with dptrack.init(run_name='child') as own:
                own.log({'x': 9.0})
            sys.exit(0)
        os.wait()
        run.log({'x': 4.0})
        ''')
    assert lib.only(runs, 'parent').series('x') == [(1, 1.0), (2, 4.0)] and lib.only(runs, 'child').series('x') == [(1, 9.0)]
    assert err.count('dptrack:') == 1 and 'belongs to process' in err, err


def children_of_multiprocessing(folder):
    runs = folder + '/runs'
    for method in ('fork', 'spawn', 'forkserver'):
        lib.run(runs, '''
            import dptrack, multiprocessing, sys
            method = sys.argv[1]
            run = dptrack.init(experiment=method, run_name='main')
            run.log({'x': 1.0})
            def work(n):
                own = dptrack.init(experiment=method, run_name='worker%d' % n)
                own.log({'y': float(n)})
                if n == 1:
                    raise RuntimeError('no luck')
                if n == 2:
                    raise SystemExit(3)
            if __name__ == '__main__':
                children = [multiprocessing.get_context(method).Process(target=work, args=(n,)) for n in range(3)]
                [c.start() for c in children]
                [c.join() for c in children]
                run.log({'x': 2.0})
            ''', method)
        assert lib.only(runs, 'main', method).series('x') == [(1, 1.0), (2, 2.0)]
        assert lib.only(runs, 'worker0', method).statuses == [(FINISHED, '')]
        assert lib.only(runs, 'worker1', method).statuses[0] == (FAILED, 'RuntimeError: no luck')
        assert lib.only(runs, 'worker2', method).statuses[0] == (FAILED, 'exit 3')


def a_killed_process_loses_a_second_at_most(folder):
    runs = folder + '/runs'
    process = lib.start(runs, '''
        import dptrack, time
        run = dptrack.init()
        step = 0
        while True:
            step += 1
            run.log({'t': time.time()}, step=step)
            print(step, flush=True)
            time.sleep(0.005)
        ''')
    while int(process.stdout.readline()) < 300:
        pass
    killed = time.time()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    points = lib.only(runs).series('t')
    assert [s for s, _ in points] == list(range(1, len(points) + 1))
    assert killed - points[-1][1] < 1.0, 'the newest point is %.2f s older than the kill' % (killed - points[-1][1])


def a_pool_of_workers(folder):
    """Idle workers record nothing, whatever they call; runs that workers open are finished when the pool ends."""
    runs = folder + '/runs'
    lib.run(runs, '''
        import concurrent.futures, dptrack, multiprocessing
        def idle(n):
            dptrack.log({'x': 100.0 + n}, step=100 + n)
            print('of a worker', n)
        def busy(n):
            with dptrack.init(experiment='pool', run_name='job%d' % n) as own:
                own.log({'y': float(n)})
        if __name__ == '__main__':
            run = dptrack.init(run_name='main')
            run.log({'x': 1.0})
            forks, spawns = (multiprocessing.get_context(m) for m in ('fork', 'spawn'))
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=forks) as pool:
                list(pool.map(idle, range(8)))
                list(pool.map(busy, range(4)))
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawns) as pool:
                list(pool.map(busy, range(4, 8)))
            run.log({'x': 2.0})
        ''')
    j = lib.only(runs, 'main')
    assert j.series('x') == [(1, 1.0), (2, 2.0)] and j.statuses == [(FINISHED, '')] and b'of a worker' not in j.data
    for n in range(8):
        j = lib.only(runs, 'job%d' % n, 'pool')
        assert j.series('y') == [(1, float(n))] and j.statuses == [(FINISHED, '')], (n, j.statuses)
    assert len(lib.journals(runs)) == 9


def a_killed_process_leaves_a_child(folder):
    """A million points are queued, and lines; the surviving fork adds nothing and does not prevent a resume."""
    runs = folder + '/runs'
    process = lib.start(runs, '''
        import dptrack, os, sys, time
        run = dptrack.init(run_name='killed', resume='auto')
        child = os.fork()
        if not child:
            os.close(1)
            os.close(2)
            run.log({'t': 0.0}, step=10 ** 9)
            sys.stdin.readline()
            os._exit(0)
        said = os.fdopen(os.dup(1), 'w')
        step = 0
        while True:
            for _ in range(1000):
                step += 1
                run.log({'t': time.time(), 'u': 1.0}, step=step)
            print('line', step, repr(time.time()))
            said.write('%d\\n' % step)
            said.flush()
            time.sleep(0.01)
        ''')
    for line in process.stdout:
        if line.startswith('40000'):
            break
    killed = time.time()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    j = lib.only(runs, 'killed')
    points, others = j.series('t'), [s for s, _ in j.series('u')]
    steps = list(range(1, len(points) + 1))  # of the last row the kill may leave one value
    assert [s for s, _ in points] == steps and others in (steps, steps[:-1]), (len(points), len(others))
    assert killed - points[-1][1] < 1.0, 'the newest point is %.2f s older than the kill' % (killed - points[-1][1])
    again = """
        import dptrack
        with dptrack.init(run_name='killed', resume='auto') as run:
            run.log({'t': 0.0}, step=%d)
        """ % (len(points) + 1)
    lib.run(runs, again)
    process.stdin.write('\n')
    process.stdin.close()
    process.stdout.read()
    first, second = lib.journals(runs, 'killed')
    assert first.header['run_id'] == second.header['run_id'] and second.header['segment'] == 1 and second.series('t') == [(len(points) + 1, 0.0)]
    assert len(first.series('t')) == len(points), 'the child added points'
    lines = [x['text'].split() for x in console(runs, first.header['run_id'])]
    steps = [int(w[1]) for w in lines if w[:1] == ['line']]
    assert steps == list(range(1000, 1000 * len(steps) + 1, 1000)) and killed - float(lines[len(steps) - 1][2]) < 1.0, lines[-2:]


def console(runs, run_id):
    from told import Server
    with Server(runs) as server:
        return server.get(run_id, 'console', segment=0, limit=50000)['lines']


def disabled_and_refused(folder):
    runs = folder + '/runs'
    out, _ = lib.run(runs, '''
        import dptrack
        try:
            dptrack.log({'x': 1})
        except dptrack.Error as error:
            print(error)
        try:
            dptrack.init(runs_dir='/dev/null/x')
        except dptrack.Error as error:
            print(error)
        run = dptrack.init(mode='disabled', config={'lr': 1})
        run.log({'x': 1})
        print(run.config.lr)
        ''')
    lines = out.strip().split('\n')
    assert lines[0] == 'dptrack.log requires a run: call dptrack.init() first' and 'Not a directory' in lines[1] and lines[2] == '1', out
    assert not os.path.exists(runs)


def odd_steps(folder):
    """A step that 64 bits do not hold is reported and lost, not recorded as another one; none stops the script."""
    runs = folder + '/runs'
    _, err = lib.run(runs, '''
        import dptrack, math
        run = dptrack.init(run_name='steps', code=False, console=False, system=0)
        for step in (2**63, 2**64, -2**63 - 1, 10**30, math.nan, math.inf, 'x'):
            run.log({'a': 1.0}, step=step)
            run.log_rank({'b': 1.0}, step=step)
        run.log({'a': 2.0}, step=-2**63)
        run.log({'a': 3.0}, step=2.5)
        run.log({'a': 4.0}, step=2**63 - 1)
        run.log({'a': 5.0})
        run.define_metric('val/*', step_metric='epoch')
        for epoch in (math.nan, math.inf, 1e30, 3.0):
            run.log({'val/x': 1.0, 'epoch': epoch}, step=7)
        ''')
    j = lib.only(runs)
    assert sorted(j.series('a')) == [(-2**63, 2.0), (2, 3.0), (2**63 - 1, 4.0)], j.series('a')
    assert not j.series('b') and [s for s, _ in j.series('val/x')] == [7, 7, 7, 3], j.series('val/x')
    assert err.split('\n') == ['dptrack: values at step 9223372036854775808 are lost: expected a whole number of 64 bits',
                               'dptrack: step 2.5 is recorded as 2: steps are whole numbers', ''], err


def odd_values(folder):
    """What log cannot record is reported once per kind, the rest of the row is recorded, and the script continues."""
    runs = folder + '/runs'
    _, err = lib.run(runs, '''
        import dptrack
        class Wordless:
            def __str__(self): raise ValueError('no text')
        run = dptrack.init(run_name='values', code=False, console=False, system=0, config={}, tags='one word')
        circle = {'loss': 1.0, 'none': {}}
        circle['itself'] = circle
        deep = {'v': 1.0}
        for _ in range(5000):
            deep = {'x': deep}
        for values in (None, 5, circle, {'deep': deep}, {Wordless(): 1.0}, {'y': 1.0, 7: 2.0}):
            run.log(values)
            run.log(values)
        run.config.update(circle)
        run.define_metric(None)
        run.tag(None, 'x')
        run.alert('a', level='loud')
        run.log({'after': 1.0})
        try:
            import numpy
        except ImportError:
            numpy = None  # an interpreter without it makes no images of arrays
        of_arrays = (lambda: dptrack.Image([['a']]), lambda: dptrack.Histogram([None])) if numpy else ()
        for make in (lambda: dptrack.Image(b'\\x89PNG\\r\\n\\x1a\\n'), *of_arrays):
            try:
                make()
            except ValueError as error:
                print(error)
        ''')
    j = lib.only(runs)
    assert j.series('after') and len(j.series('loss')) == len(j.series('7')) == len(j.series('itself/loss')) == 2 and j.tags == {'None': 'x', 'one word': ''}, (j.points, j.tags)
    lines = err.strip().split('\n')
    for words in ('records nothing: expected {key: number}, not NoneType', '"itself/itself/', '"deep/x/', 'ValueError: no text', "alert level 'loud'"):
        assert sum(words in line for line in lines) == 1, (words, err)
    assert len(lines) == 5, err


def texts_with_nul(folder):
    """NUL ends a text for the library: it is left out, and what follows it is not lost."""
    runs = folder + '/runs'
    lib.run(runs, '''
        import dptrack
        run = dptrack.init('ex\\0periment', run_name='na\\0me', config={'p': 'v\\0w'}, tags={'t': 'x\\0y'}, notes='a\\0b', code=False)
        run.log({'m': dptrack.Text('c\\0d')})
        run.finish('failed', 'on\\0e')
        ''')
    j = lib.only(runs)
    assert (j.header['experiment'], j.header['run_name'], j.params, j.tags, j.notes, j.statuses[0]) == (
        'experiment', 'name', {'p': 'vw'}, {'t': 'xy'}, ['ab'], (FAILED, 'one')), (j.header, j.params, j.tags, j.notes, j.statuses)


def odd_params(folder):
    """Params that JSON lacks are recorded as text; one line says that keys were refused, and that there were others."""
    runs = folder + '/runs'
    _, err = lib.run(runs, '''
        import dptrack
        class Broken:
            def __str__(self): raise ValueError('no text')
        knot = [1]
        knot.append(knot)
        dptrack.init(config={'a': [{(1, 2): 3}], 'b': Broken(), 'c': knot, 'new\\nline': 1, 'k' * 300: 1}, code=False)
        ''')
    params = lib.only(runs).params
    assert params.pop('b').startswith('<__main__.Broken object at ') and params == {'a': '[{(1, 2): 3}]', 'c': '[1, [...]]'}, params
    assert err.count('\n') == 1 and err.startswith('dptrack: param "kkk') and err.endswith('(and others)\n'), err


def options_out_of_range(folder):
    runs = folder + '/runs'
    for code, why, more in (('mode="offline"', "mode (DPTRACK_MODE) is 'offline': expected", {}), ('', "is 'of': expected", {'DPTRACK_MODE': 'of'}),
                            ('', 'rank 5 of 2 is out of range', {'RANK': '5', 'WORLD_SIZE': '2'}), ('rank=3', 'rank 3 of 1 is out', {}),
                            ('tags=5', 'tags: expected {key: value} or a list of words, not int', {})):
        _, err = lib.run(runs, 'import dptrack; dptrack.init(%s)' % code, status=1, **more)
        assert why in err.strip().split('\n')[-1], err
    assert not os.path.exists(runs)


def secrets_are_not_recorded(folder):
    runs = folder + '/runs'
    planted = ['s3cr3t-env-value', 's3cr3t-arg-value', 's3cr3t-config-val', 'hf_abcdefghijklmnopqrstuv', 's3cr3t-in-url']
    lib.run(runs, '''
        import dptrack, os, sys
        run = dptrack.init(config={'hub_token': 's3cr3t-config-val', 'data': 'https://me:s3cr3t-in-url@host/x', 'pad_token': '<pad>',
                                   'argument': sys.argv[2], 'max_tokens': 60, 'tokenizer': 'bpe'},
                           notes='used ' + os.environ['MY_API_KEY'] + ' and hf_abcdefghijklmnopqrstuv')
        run.tag('where', 's3cr3t-env-value!')
        ''', '--api-key', 's3cr3t-arg-value', '--lr', '0.1', MY_API_KEY='s3cr3t-env-value', OMP_NUM_THREADS='1', SECRET_PLAN='s3cr3t-env-value')
    j = lib.only(runs)
    for value in planted:
        assert value.encode() not in j.data, value
    assert j.params['pad_token'] == '<pad>' and j.params['max_tokens'] == 60 and j.params['tokenizer'] == 'bpe'
    assert j.env['env/OMP_NUM_THREADS'] == '1' and 'env/MY_API_KEY' not in j.env and '--lr 0.1' in j.env['command'], j.env
    assert set(k for k in j.env if k.startswith('env/')) <= {'env/OMP_NUM_THREADS', 'env/HOSTNAME'}, j.env


def what_was_recorded_reads_back_by_queries(folder):
    """By the program on the folder, and by a server over HTTP."""
    runs = folder + '/runs'
    program = os.path.join(lib.BUILD, 'dptrack')
    lib.run(runs, """
        import dptrack, math
        for n in range(3):
            with dptrack.init(experiment='q', run_name='run%d' % n, config={'lr': 0.1 * n}) as run:
                for step in range(1, 6):
                    run.log({'loss': n + 1 / step, 'acc': math.nan if step == 3 else float(step)}, step=step)
        """)
    asking = """
        import dptrack, json, math
        best = dptrack.runs('q', filter="params.lr > 0.05", order_by='metrics."loss".min ASC')
        assert [r.name for r in best] == ['run1', 'run2'] and best[0].params['lr'] == '0.1', best
        assert best[0].metrics['loss']['min'] == 1.2 and best[0].status == 'finished'
        assert best[0].history('loss') == [{'step': s, 'loss': 1 + 1 / s} for s in range(1, 6)]
        both = best[0].history(['loss', 'acc'])
        assert both[0] == {'step': 1, 'loss': 2.0, 'acc': 1.0} and math.isnan(both[2]['acc']) and len(both) == 5
        assert [p['value'] for p in best[0].points('loss')] == [1 + 1 / s for s in range(1, 6)]
        assert [e['run_count'] for e in dptrack.experiments() if e['name'] == 'q'] == [3]
        try:
            dptrack.runs('absent')
        except dptrack.Error as error:
            print(error)
        """
    local, _ = lib.run(runs, asking, DPTRACK_PROGRAM=program)
    server = subprocess.Popen([program, 'serve', '--logdir', runs, '--port', '0'], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        remote, _ = lib.run(folder + '/none', asking, DPTRACK_URL=url)
    finally:
        server.terminate()
        server.wait()
    assert local == remote and 'absent' in local, (local, remote)


class Redirecting(http.server.BaseHTTPRequestHandler):
    """/elsewhere redirects to another server, /self to its own address; other addresses are an empty list."""
    heard, other = [], ''

    def do_GET(self):
        Redirecting.heard.append((self.server.server_port, self.path.partition('?')[0], self.headers.get('Authorization')))
        to = self.path.startswith('/elsewhere') and self.other + self.path or self.path.startswith('/self') and self.path[5:]
        self.send_response(302 if to else 200)
        if to:
            self.send_header('Location', to)
        body = b'' if to else b'{"runs": []}'
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def a_token_stays_with_its_server(folder):
    """No redirect carries it to another one (requests' CVE-2018-18074), and the message names both."""
    servers = [http.server.ThreadingHTTPServer(('127.0.0.1', 0), Redirecting) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    here, there = ('http://127.0.0.1:%d' % server.server_port for server in servers)
    Redirecting.other = there
    asking = """
        import dptrack
        try:
            print(dptrack.runs())
        except dptrack.Error as error:
            print(error)
        """
    said, _ = lib.run(folder + '/none', asking, DPTRACK_URL=here + '/self', DPTRACK_TOKEN='dpt_secret')
    assert said == '[]\n' and [h[1:] for h in Redirecting.heard] == [('/self/api/v1/runs', 'Bearer dpt_secret'), ('/api/v1/runs', 'Bearer dpt_secret')], (said, Redirecting.heard)
    said, _ = lib.run(folder + '/none', asking, DPTRACK_URL=here + '/elsewhere', DPTRACK_TOKEN='dpt_secret')
    assert here in said and there in said and 'another server' in said and 'secret' not in said, said
    command = subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'ls', '--url', here + '/elsewhere'], capture_output=True, text=True, timeout=60,
                             env=lib.environment(folder + '/none', DPTRACK_TOKEN='dpt_secret'))
    assert command.returncode == 1 and '302' in command.stderr, command
    assert {h[0] for h in Redirecting.heard} == {servers[0].server_port}, Redirecting.heard
    for server in servers:
        server.shutdown()


def main():
    sys.exit(parallel.run([everything_reads_back, steps_counted_by_another_key, every_end_has_its_status, forks_record_nothing_twice,
                           children_of_multiprocessing, a_pool_of_workers, a_killed_process_loses_a_second_at_most,
                           a_killed_process_leaves_a_child, disabled_and_refused, odd_steps, odd_values, texts_with_nul, odd_params, options_out_of_range,
                           secrets_are_not_recorded, what_was_recorded_reads_back_by_queries,
                           a_token_stays_with_its_server]))


if __name__ == '__main__':
    main()

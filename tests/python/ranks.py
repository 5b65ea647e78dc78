#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of one job form one run, whatever the launcher: processes get the variables of torchrun, Slurm and mpirun as
these set them. A restart is a segment that begins with the first step it logs; the next program of the job is the next
run."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
import parallel  # noqa: E402

PROGRAM = '''
    import dptrack, sys, time
    first, last, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    run = dptrack.init(experiment='job', run_name=name, config={'lr': 0.1})
    for step in range(first, last + 1):
        run.log({'loss': float(step + run.rank)}, step=step)
    print(run.id, run.rank, run.world_size, run.segment, flush=True)
    if len(sys.argv) > 4:
        sys.stdin.readline()
        raise RuntimeError('rank %d breaks' % run.rank)
    '''


def torchrun(rank, attempt=0, port='29500'):
    return {'RANK': str(rank), 'WORLD_SIZE': '2', 'LOCAL_RANK': str(rank), 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': port,
            'TORCHELASTIC_RUN_ID': 'none', 'TORCHELASTIC_RESTART_COUNT': str(attempt)}


def slurm(rank, attempt=0):
    env = {'SLURM_JOB_ID': '4711', 'SLURM_STEP_ID': '0', 'SLURM_STEP_NUM_TASKS': '2', 'SLURM_NTASKS': '2', 'SLURM_PROCID': str(rank)}
    return dict(env, SLURM_RESTART_COUNT=str(attempt)) if attempt else env


def open_mpi(rank, attempt=0):
    return {'OMPI_COMM_WORLD_RANK': str(rank), 'OMPI_COMM_WORLD_SIZE': '2', 'PMIX_NAMESPACE': 'prterun-host-4711@1'}


def mpich(rank, attempt=0):
    return {'PMI_RANK': str(rank), 'PMI_SIZE': '2'}


def together(runs, launcher, *words, attempt=0):
    """Starts both ranks, the second one first; returns what each prints about itself."""
    processes = [lib.start(runs, PROGRAM, *words, **launcher(rank, attempt)) for rank in (1, 0)]
    said = []
    for p in processes:
        out, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
        said.append(out.split())
    return said[1], said[0]


def check_two_ranks(runs, name, first, last):
    found = lib.journals(runs, name)
    assert [j.header['rank'] for j in found] == [0, 1] and {j.header['world_size'] for j in found} == {2}
    assert len({j.header['run_id'] for j in found}) == 1
    wanted = [(s, float(s)) for s in range(first, last + 1)]
    assert found[0].series('loss') == wanted and found[1].series('loss', 1) == [(s, v + 1) for s, v in wanted]
    assert found[0].statuses == [(1, '')] and found[1].statuses == [] and found[1].params == {}
    return found[0].header['run_id']


def one_run_by_every_launcher(folder):
    ids = []
    for launcher in (torchrun, slurm, open_mpi, mpich):
        runs = '%s/%s/runs' % (folder, launcher.__name__)
        os.makedirs(os.path.dirname(runs))
        zero, one = together(runs, launcher, '1', '5', 'first')
        assert zero[0] == one[0] and zero[1:] == ['0', '2', '0'] and one[1:] == ['1', '2', '0'], (zero, one)
        again = together(runs, launcher, '1', '5', 'second')
        assert again[0][0] == again[1][0] != zero[0], 'the next program of the job is the next run'
        ids += [check_two_ranks(runs, 'first', 1, 5), check_two_ranks(runs, 'second', 1, 5)]
    assert len(set(ids)) == len(ids)


def wait_for_points(runs, n):
    """Waits until rank 0's journal has this many points: what was logged in the second before a kill may be lost."""
    until = time.monotonic() + 60
    while not any(j.header['rank'] == 0 and len(j.series('loss')) == n for j in lib.journals(runs)):
        assert time.monotonic() < until, 'points do not arrive in the journal'
        time.sleep(0.05)


def restarts_are_segments(folder):
    for launcher in (torchrun, slurm):
        runs = '%s/%s/runs' % (folder, launcher.__name__)
        os.makedirs(os.path.dirname(runs))
        processes = [lib.start(runs, PROGRAM, '1', '10', 'r', 'break', **launcher(rank)) for rank in (0, 1)]
        said = [p.stdout.readline().split() for p in processes]
        processes[1].communicate('\n', timeout=120)
        wait_for_points(runs, 10)
        processes[0].send_signal(signal.SIGTERM)
        processes[0].communicate()
        again = together(runs, launcher, '7', '12', 'r', attempt=1)
        third = together(runs, launcher, '9', '14', 'r', attempt=2)
        assert {w[0] for w in (*said, *again, *third)} == {said[0][0]}, 'one run'
        assert [w[3] for w in (*said, *again, *third)] == ['0', '0', '1', '1', '2', '2']
        found = lib.journals(runs)
        assert [(j.header['segment'], j.header['rank'], j.header['first_step']) for j in found] == \
            [(0, -2, 0), (0, 0, 0), (0, 1, 0), (1, 0, 7), (1, 1, 7), (2, 0, 9), (2, 1, 9)]
        assert found[0].statuses[0] == (2, 'rank 1: RuntimeError: rank 1 breaks'), 'the failed rank reported the failure for all'
        assert found[3].series('loss') == [(s, float(s)) for s in range(7, 13)]
        check_server(runs, said[0][0])


def check_server(runs, run_id):
    """The server's view: one curve, each step once, from the newest segment that has it."""
    out = subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'export', '--series', '--csv', '--key', 'loss', '--logdir', runs, run_id],
                         capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    rows = [line.split(',') for line in out.stdout.strip().split('\n')]
    at = {name: rows[0].index(name) for name in ('rank', 'segment', 'step', 'value')}
    for rank in (-1, 1):
        got = [(int(r[at['segment']]), int(r[at['step']])) for r in rows[1:] if int(r[at['rank']]) == rank]
        assert sorted(got) == [(0, s) for s in range(1, 7)] + [(1, 7), (1, 8)] + [(2, s) for s in range(9, 15)], got
    state = subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'ls', '--logdir', runs], capture_output=True, text=True).stdout
    assert 'finished' in state and len(state.strip().split('\n')) == 2, state


def another_job_is_another_run(folder):
    """Two successive torchruns have the same run id, address and port; their agents differ."""
    runs = folder + '/runs'
    agent = ('import os, subprocess, sys\n'
             'ps = [subprocess.Popen([sys.executable, %r, "1", "2", "x"], env=dict(os.environ, RANK=r, WORLD_SIZE="2", MASTER_ADDR="h",\n'
             '      MASTER_PORT="1", TORCHELASTIC_RUN_ID="none")) for r in "01"]\n'
             'sys.exit(sum(p.wait() for p in ps))\n')
    path = folder + '/rank.py'
    with open(path, 'w') as f:
        f.write(__import__('textwrap').dedent(PROGRAM))
    for _ in range(2):
        lib.run(runs, agent % path)
    found = lib.journals(runs)
    assert [j.header['rank'] for j in found] == [0, 1, 0, 1] and len({j.header['run_id'] for j in found}) == 2


def a_run_is_continued_manually(folder):
    runs = folder + '/runs'
    out, _ = lib.run(runs, '''
        import dptrack
        with dptrack.init(experiment='e', run_name='n', resume='auto') as run:
            run.log({'x': 1.0}, step=5)
        with dptrack.init(experiment='e', run_name='n', resume='auto', config={'lr': 1}) as again:
            again.log({'x': 2.0}, step=4)
        with dptrack.init(run_id=run.id, first_step=9) as third:
            third.log({'x': 3.0}, step=9)
        with dptrack.init(run_id='ab' * 16, run_name='given') as new:
            new.log({'x': 0.0})
        for options in ({'resume': True}, {'run_id': 'cd' * 16, 'resume': True}, {'resume': 'auto'}):
            try:
                dptrack.init(**options)
            except dptrack.Error as error:
                print(error)
        ''')
    found = lib.journals(runs, 'n')
    assert [(j.header['segment'], j.header['first_step']) for j in found] == [(0, 0), (1, 4), (2, 9)]
    assert len({j.header['run_id'] for j in found}) == 1 and found[1].params == {'lr': 1}
    assert lib.only(runs, 'given').header['run_id'] == 'ab' * 16
    assert len(out.strip().split('\n')) == 3 and 'run cdcd' in out and 'not found' in out, out


def ranks_are_given(folder):
    """Processes that give their rank and one run_id, without a launcher, are one segment of that run, in any order of start."""
    runs = folder + '/runs'
    program = """
        import dptrack, sys
        rank = int(sys.argv[1])
        run = dptrack.init(run_id='ab' * 16, rank=rank, world_size=3)
        run.log({'x%d' % rank: 1.0}, step=1)
        print(run.segment)
        """
    for segment in ('0', '1'):
        ranks = [lib.start(runs, program, str(rank)) for rank in (2, 1, 0)]
        said = [rank.communicate(timeout=lib.LIMIT_S) for rank in ranks]
        assert [out.strip() for out, _ in said] == [segment] * 3, said
    assert sorted((j.header['rank'], j.header['segment']) for j in lib.journals(runs)) == [(r, s) for r in range(3) for s in range(2)]


def main():
    sys.exit(parallel.run([one_run_by_every_launcher, restarts_are_segments, another_job_is_another_run, a_run_is_continued_manually,
                           ranks_are_given]))


if __name__ == '__main__':
    main()

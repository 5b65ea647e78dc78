# SPDX-License-Identifier: Apache-2.0
"""PyTorch under torchrun: two ranks of DistributedDataParallel on gloo form one run; a killed rank makes the job
restart, which is a segment; a delay of 20 ms in a phase is found in that phase. Run by tests/python/all."""
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
from told import Server  # noqa: E402

PROGRAM = '''
import os, signal, sys, time
import torch, torch.distributed as dist
import dptrack, dptrack.torch

where, slow_rank, dies_at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group('gloo')
rank = dist.get_rank()
again = os.path.exists('died')
first = 7 if again else 1
run = dptrack.init(experiment='ddp', run_name=where, config={'lr': 0.01})
slept = []

def planted(phase, at=None):
    """In every second step, so that the steps between are what to compare with."""
    if where == phase and rank == slow_rank and (step if at is None else at) % 2 == 0:
        begin = time.perf_counter()
        time.sleep(0.02)
        slept.append(time.perf_counter() - begin)

class Batch:
    def __init__(self, x): self.x = x
    def to(self, device, non_blocking):
        planted('h2d', step + 1)
        return self.x

class Data(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, i):
        if i % 8 == 0: planted('data_wait', i // 8 + 1)
        return torch.ones(64) * i / 400

class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): planted('forward'); return x
    @staticmethod
    def backward(ctx, g): planted('backward'); return g

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(64, 64), torch.nn.Linear(64, 1)
    def forward(self, x): return self.b(Slow.apply(torch.relu(self.a(x))))

torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(Net())
if where == 'comm_exposed' and rank == slow_rank:
    def hook(state, bucket):
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        def late(f): planted('comm_exposed'); return f.value()[0] / 2
        return future.then(late)
    model.register_comm_hook(None, hook)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = first - 1
data = torch.utils.data.DataLoader(Data(), batch_size=8, collate_fn=lambda rows: Batch(torch.stack(rows)))
loader = dptrack.torch.instrument(model, optimizer, data, device='cpu', first_step=first)
optimizer.register_step_pre_hook(lambda *a: planted('optimizer'))
for batch in loader:
    step += 1
    if step > 30: break
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log({'loss': loss, 'mine': float(rank)}, step=step)
    if step == dies_at and rank == 1 and not again:
        time.sleep(0.5)
        open('died', 'w').close()
        os.kill(os.getpid(), signal.SIGKILL)
if slept:
    with open('planted-' + where, 'w') as f:
        f.write('%.9f' % sorted(slept[1:])[len(slept) // 2 - 1])
dptrack.finish()
dist.destroy_process_group()
'''


def torchrun(folder, runs, *words):
    """Each attempt has a separate store: in a shared one gloo finds the addresses of the previous attempt, and waits
    for them."""
    path = folder + '/train.py'
    with open(path, 'w') as f:
        f.write(PROGRAM)
    done = subprocess.run([sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2', '--max-restarts', '5', path, *words],
                          env=lib.environment(runs, OMP_NUM_THREADS='1', GLOO_SOCKET_IFNAME='lo',
                                              TORCH_DISABLE_SHARE_RDZV_TCP_STORE='1'), capture_output=True, text=True, cwd=folder, timeout=lib.LIMIT_S)
    assert done.returncode == 0, done.stderr[-3000:]


def a_killed_rank_is_a_segment(folder):
    runs = folder + '/runs'
    torchrun(folder, runs, 'nowhere', '0', '8')
    found = lib.journals(runs)
    heads = [(j.header['run_id'], j.header['segment'], j.header['rank'], j.header['first_step']) for j in found]
    assert len({head[0] for head in heads}) == 1, heads
    assert [(j.header['segment'], j.header['rank'], j.header['first_step']) for j in found] == [(0, 0, 0), (0, 1, 0), (1, 0, 7), (1, 1, 7)], heads
    assert [s for s, _ in found[2].series('loss')] == list(range(7, 31)) and found[2].statuses[-1] == (1, '')
    assert [s for s, _ in found[1].series('loss', 1)][:8] == list(range(1, 9)), 'what the killed rank logged half a second earlier'
    return 'one run, two ranks, two segments'


PHASES = ('data_wait', 'h2d', 'forward', 'backward', 'comm_exposed', 'optimizer', 'other')


def rises(j):
    """{phase: ms by which the median of even steps exceeds that of odd ones}, without the first steps."""
    out = {}
    for phase in PHASES:
        points = [(s, v) for s, v in j.series('phase/' + phase, j.header['rank']) if s > 4]
        even, odd = (statistics.median(v for s, v in points if s % 2 == n) for n in (0, 1))
        out[phase] = (even - odd) * 1e3
    return out


def planted(phase):
    """A case: 20 ms in every second step of rank 1 in a phase appear there, within 2 ms of the actual sleep, and
    nowhere else."""
    def case(folder):
        runs = folder + '/runs'
        torchrun(folder, runs, phase, '1', '0')
        with open(os.path.join(folder, 'planted-' + phase)) as f:
            slept = float(f.read()) * 1e3
        more = rises(next(j for j in lib.journals(runs, phase) if j.header['rank'] == 1))
        assert abs(more[phase] - slept) < 2, (phase, slept, more)
        assert all(abs(more[p]) < 5 for p in more if p != phase), (phase, more)
        return '+%.1f of %.1f ms' % (more[phase], slept)
    case.__name__ = 'planted_in_' + phase
    return case


def the_slow_rank_is_named(folder):
    """In the server's diagnosis: the rank with the long own time, not the one that waits for it."""
    runs = folder + '/runs'
    torchrun(folder, runs, 'forward', '1', '0')
    found = lib.journals(runs, 'forward')
    own = {j.header['rank']: statistics.mean(v for s, v in j.series('phase/forward', j.header['rank']) if s > 4) for j in found}
    with Server(runs) as server:
        diagnosis = server.get(found[0].header['run_id'], 'diagnosis')
    stragglers = [leaf for leaf in diagnosis['leaves'] if leaf['leaf'] == 'straggler']
    assert own[1] > own[0] + 0.005 and stragglers and 'rank 1' in stragglers[0]['evidence'], (own, diagnosis)
    return stragglers[0]['evidence']


if __name__ == '__main__':
    lib.choose(a_killed_rank_is_a_segment, *map(planted, PHASES[:-1]), the_slow_rank_is_named)

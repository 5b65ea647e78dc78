"""PyTorch under torchrun: two ranks of DistributedDataParallel on gloo are one run; a rank that dies takes the job to a restart,
which is a segment; 20 ms planted in a phase are found in that phase. Run by tests/python/all."""
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

PROGRAM = '''
import os, signal, sys, time
import torch, torch.distributed as dist
import dptrack, dptrack.torch

where, slow_rank, dies_at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group('gloo')
rank, attempt = dist.get_rank(), int(os.environ['TORCHELASTIC_RESTART_COUNT'])
first = 1 if attempt == 0 else 7
run = dptrack.init(experiment='ddp', run_name=where, config={'lr': 0.01})
planted = lambda phase: time.sleep(0.02) if where == phase and rank == slow_rank else None

class Data(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, i):
        if i % 8 == 0: planted('data_wait')
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
loader = dptrack.torch.instrument(model, optimizer, torch.utils.data.DataLoader(Data(), batch_size=8), device='cpu', first_step=first)
optimizer.register_step_pre_hook(lambda *a: planted('optimizer'))
step = first - 1
for batch in loader:
    step += 1
    if step > 30: break
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log({'loss': loss, 'mine': float(rank)}, step=step)
    if step == dies_at and rank == 1 and attempt == 0:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
dptrack.finish()
dist.destroy_process_group()
'''


def torchrun(folder, runs, *words):
    path = folder + '/train.py'
    with open(path, 'w') as f:
        f.write(PROGRAM)
    done = subprocess.run([sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2', '--max-restarts', '1', path, *words],
                          env=lib.environment(runs, OMP_NUM_THREADS='1', GLOO_SOCKET_IFNAME='lo'), capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def a_killed_rank_is_a_segment(folder):
    runs = folder + '/runs'
    torchrun(folder, runs, 'nowhere', '0', '8')
    found = lib.journals(runs)
    assert len({j.header['run_id'] for j in found}) == 1
    assert [(j.header['segment'], j.header['rank'], j.header['first_step']) for j in found] == [(0, 0, 0), (0, 1, 0), (1, 0, 7), (1, 1, 7)]
    assert [s for s, _ in found[2].series('loss')] == list(range(7, 31)) and found[2].statuses[-1] == (1, '')
    assert [s for s, _ in found[1].series('loss', 1)][:8] == list(range(1, 9)), 'what the killed rank had logged half a second before'
    return 'one run, two ranks, two segments'


def medians(runs, name):
    """{rank: {phase: median seconds}} but for the first steps."""
    out = {}
    for j in lib.journals(runs, name):
        rank = j.header['rank']
        out[rank] = {p: statistics.median(v for s, v in j.series('phase/' + p, rank) if s > 5)
                     for p in ('data_wait', 'h2d', 'forward', 'backward', 'comm_exposed', 'optimizer', 'other', 'step')}
    return out


def planted_time_is_found(folder):
    said = []
    runs = folder + '/runs'
    torchrun(folder, runs, 'nothing', '1', '0')
    base = medians(runs, 'nothing')
    for phase in ('data_wait', 'forward', 'backward', 'comm_exposed', 'optimizer'):
        torchrun(folder, runs, phase, '1', '0')
        got = medians(runs, phase)[1]
        more = {p: (got[p] - base[1][p]) * 1e3 for p in got}
        said.append('%s +%.1f ms' % (phase, more[phase]))
        assert 18 < more[phase] < 24, (phase, more)
        assert all(more[p] < 6 for p in more if p not in (phase, 'step')), (phase, more)
    return ', '.join(said)


def main():
    failed = 0
    for case in (a_killed_rank_is_a_segment, planted_time_is_found):
        with tempfile.TemporaryDirectory() as folder:
            try:
                print('ok %s: %s' % (case.__name__, case(folder)), flush=True)
            except Exception as error:
                failed = 1
                print('FAILED %s: %s: %s' % (case.__name__, type(error).__name__, error), flush=True)
    sys.exit(failed)


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: Apache-2.0
"""Phases of PyTorch's training steps by rank, as dptrain records its own: data_wait, h2d, forward, backward, comm_exposed,
optimizer and what is left (other), in seconds. The page then shows bars, the map of ranks and the straggler.

    loader = dptrack.torch.instrument(model, optimizer, loader)

A step ends when optimizer.step returns. What runs on a GPU is waited for at the borders of the phases in one of `every` steps;
the others are left as they are and not recorded."""
import time

import torch

from dptrack import _run

PHASES = ('data_wait', 'h2d', 'forward', 'backward', 'comm_exposed', 'optimizer')


def instrument(model, optimizer, loader=None, device=None, run=None, first_step=1, every=None):
    """The loader to iterate over (None without one); with device its batches come moved there, which is the phase h2d.

    model: also one inside DistributedDataParallel: what backward takes after the last gradient is there, waiting for other
    ranks, is comm_exposed. first_step: number of the next step, when training resumes. every: steps between two that are
    recorded; 1 on a CPU, 20 on a GPU."""
    clock = _Steps(run or _run.active(), first_step, every or (20 if _on_gpu(model) else 1), _on_gpu(model))
    if clock.run is None:
        raise _run.Error('instrument needs a run: call dptrack.init() first')
    _watch_forward(model, clock)
    _watch_backward(model, clock)
    optimizer.register_step_pre_hook(lambda *_: clock.begin('optimizer'))
    optimizer.register_step_post_hook(lambda *_: clock.end_step())
    return None if loader is None else _Loader(loader, clock, device)


def _on_gpu(model):
    return any(p.is_cuda for p in model.parameters())


class _Steps:
    """The seconds of the step under way."""

    def __init__(self, run, first_step, every, waits):
        self.run, self.step, self.every, self.waits = run, first_step, every, waits
        self.spent, self.began, self.last_gradient = dict.fromkeys(PHASES, 0.0), {}, None
        self.active = True
        self.step_began = time.perf_counter()

    def now(self):
        if self.waits and self.active:
            torch.cuda.synchronize()
        return time.perf_counter()

    def begin(self, phase):
        if self.active:
            self.began[phase] = self.now()

    def end(self, phase):
        if self.active and phase in self.began:
            self.spent[phase] += self.now() - self.began.pop(phase)

    def end_backward(self, exposes):
        """What comes after the last gradient was communication that nothing hid."""
        if not self.active or 'backward' not in self.began:
            return
        began, now = self.began.pop('backward'), self.now()
        last = self.last_gradient if exposes and self.last_gradient else now
        self.spent['backward'] += last - began
        self.spent['comm_exposed'] += now - last
        self.last_gradient = None

    def end_step(self):
        self.end('optimizer')
        now = self.now()
        if self.active:
            self._record(now - self.step_began)
        self.step += 1
        self.active = self.step % self.every == 0 or self.every == 1
        self.spent, self.began = dict.fromkeys(PHASES, 0.0), {}
        self.step_began = self.now() if self.active else now

    def _record(self, seconds):
        values = {'phase/' + phase: spent for phase, spent in self.spent.items()}
        values['phase/other'] = max(seconds - sum(self.spent.values()), 0.0)
        values['phase/step'] = seconds
        self.run.log_rank(values, self.step)


class _Loader:
    """The loader, with the wait for each batch timed; whatever else is asked of it, it answers."""

    def __init__(self, loader, clock, device):
        self._loader, self._clock, self._device = loader, clock, device

    def __iter__(self):
        batches = iter(self._loader)
        while True:
            self._clock.begin('data_wait')
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._clock.end('data_wait')
            if self._device is not None:
                self._clock.begin('h2d')
                batch = _moved(batch, self._device)
                self._clock.end('h2d')
            yield batch

    def __len__(self):
        return len(self._loader)

    def __getattr__(self, name):
        return getattr(self._loader, name)


def _moved(batch, device):
    if hasattr(batch, 'to'):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: _moved(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, '_fields'):
        return type(batch)(*(_moved(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(_moved(value, device) for value in batch)
    return batch


def _watch_forward(model, clock):
    """Only what trains: an evaluation is no part of a step."""
    model.register_forward_pre_hook(lambda module, args: clock.begin('forward') if module.training else None)
    model.register_forward_hook(lambda module, args, out: clock.end('forward') if module.training else None)


def _watch_backward(model, clock):
    parallel = isinstance(model, torch.nn.parallel.DistributedDataParallel)

    def gradient(_):
        if clock.active:
            clock.last_gradient = time.perf_counter()

    if parallel:
        for p in model.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(gradient)
    own = torch.autograd.backward

    def timed(*args, **kwargs):
        clock.begin('backward')
        try:
            return own(*args, **kwargs)
        finally:
            clock.end_backward(parallel and model.require_backward_grad_sync)

    torch.autograd.backward = timed

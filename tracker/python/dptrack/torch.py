# SPDX-License-Identifier: Apache-2.0
"""Phases of PyTorch's training steps by rank, as dptrain records its own: data_wait, h2d, forward, backward, comm_exposed,
optimizer and the rest (other), in seconds. The page then shows bars, the map of ranks and the straggler.

    loader = dptrack.torch.instrument(model, optimizer, loader)

A step ends when optimizer.step returns. On a GPU, one in `every` steps waits for the device at the borders of its phases; the
others run unchanged and are not recorded."""
from __future__ import annotations

import time

from dptrack import _missing, _run

_error: ImportError | None = None
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import torch

    from dptrack._run import Run
else:
    try:
        import torch
    except ImportError as _caught:
        torch, _error = None, _caught

PHASES = ('data_wait', 'h2d', 'forward', 'backward', 'comm_exposed', 'optimizer')


def instrument(model: Any, optimizer: Any, loader: Any = None, device: Any = None, run: Run | None = None, first_step: int = 1,
               every: int | None = None) -> Any:
    """Records the phases of the steps that follow.

    Args:
        model: A torch.nn.Module, also inside DistributedDataParallel: the time of backward after the last gradient, which waits
            for other ranks, is comm_exposed.
        optimizer: Its torch.optim.Optimizer.
        loader: An iterable of batches.
        device: Moves batches there, which is the phase h2d.
        run: The run; default: the active one.
        first_step: Number of the next step, when training resumes.
        every: Steps from one recorded step to the next; default: 1 on a CPU, 20 on a GPU.

    Returns:
        The loader to iterate over; None without a loader.

    Raises:
        Error: No run is active, or the package torch is missing.

    Example:
        >>> loader = dptrack.torch.instrument(model, optimizer, loader, device="cuda")
    """
    _missing.need('dptrack.torch.instrument', 'torch', _error)
    run = run or _run.active()
    if run is None:
        raise _run.Error('instrument needs a run: call dptrack.init() first')
    clock = _Steps(run, first_step, every or (20 if _on_gpu(model) else 1), _on_gpu(model))
    _watch_forward(model, clock)
    _watch_backward(model, clock)
    optimizer.register_step_pre_hook(lambda *_: clock.begin('optimizer'))
    optimizer.register_step_post_hook(lambda *_: clock.end_step())
    return None if loader is None else _Loader(loader, clock, device)


def _on_gpu(model: Any) -> bool:
    return any(p.is_cuda for p in model.parameters())


class _Steps:
    """The seconds of the step under way."""

    def __init__(self, run: Run, first_step: int, every: int, waits: bool) -> None:
        self.run, self.step, self.every, self.waits = run, first_step, every, waits
        self.spent: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.began: dict[str, float] = {}
        self.last_gradient: float | None = None
        self.active = True
        self.step_began = time.perf_counter()

    def now(self) -> float:
        if self.waits and self.active:
            torch.cuda.synchronize()
        return time.perf_counter()

    def begin(self, phase: str) -> None:
        if self.active:
            self.began[phase] = self.now()

    def end(self, phase: str) -> None:
        if self.active and phase in self.began:
            self.spent[phase] += self.now() - self.began.pop(phase)

    def end_backward(self, exposes: bool) -> None:
        """What comes after the last gradient was communication that nothing hid."""
        if not self.active or 'backward' not in self.began:
            return
        began, now = self.began.pop('backward'), self.now()
        last = self.last_gradient if exposes and self.last_gradient else now
        self.spent['backward'] += last - began
        self.spent['comm_exposed'] += now - last
        self.last_gradient = None

    def end_step(self) -> None:
        self.end('optimizer')
        now = self.now()
        if self.active:
            self._record(now - self.step_began)
        self.step += 1
        self.active = self.step % self.every == 0 or self.every == 1
        self.spent, self.began = dict.fromkeys(PHASES, 0.0), {}
        self.step_began = self.now() if self.active else now

    def _record(self, seconds: float) -> None:
        values = {'phase/' + phase: spent for phase, spent in self.spent.items()}
        values['phase/other'] = max(seconds - sum(self.spent.values()), 0.0)
        values['phase/step'] = seconds
        self.run.log_rank(values, self.step)


class _Loader:
    """The loader, with the wait for each batch timed. Has the loader's other attributes."""

    def __init__(self, loader: Any, clock: _Steps, device: Any) -> None:
        self._loader, self._clock, self._device = loader, clock, device

    def __iter__(self) -> Iterator[Any]:
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

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _moved(batch: Any, device: Any) -> Any:
    if hasattr(batch, 'to'):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: _moved(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, '_fields'):
        return type(batch)(*(_moved(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(_moved(value, device) for value in batch)
    return batch


def _watch_forward(model: Any, clock: _Steps) -> None:
    """Only what trains: an evaluation is no part of a step."""
    model.register_forward_pre_hook(lambda module, args: clock.begin('forward') if module.training else None)
    model.register_forward_hook(lambda module, args, out: clock.end('forward') if module.training else None)


def _watch_backward(model: Any, clock: _Steps) -> None:
    parallel = isinstance(model, torch.nn.parallel.DistributedDataParallel)

    def gradient(_: Any) -> None:
        if clock.active:
            clock.last_gradient = time.perf_counter()

    if parallel:
        for p in model.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(gradient)
    own = torch.autograd.backward

    def timed(*args: Any, **kwargs: Any) -> Any:
        clock.begin('backward')
        try:
            return own(*args, **kwargs)
        finally:
            clock.end_backward(parallel and model.require_backward_grad_sync)

    torch.autograd.backward = timed

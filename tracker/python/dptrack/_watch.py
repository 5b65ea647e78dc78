# SPDX-License-Identifier: Apache-2.0
"""Histograms of a PyTorch model's gradients and parameters while it trains."""
from __future__ import annotations

from dptrack import _missing, _run
from dptrack._media import Histogram

_error: ImportError | None = None
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import torch

    from dptrack._run import Run
else:
    try:
        import torch
    except ImportError as _caught:
        torch, _error = None, _caught

BINS = 64


def watch(model: Any, log: str | None = 'gradients', log_freq: int = 1000, prefix: str = '',
          record: Callable[[str, Histogram], object] | None = None, run: Run | None = None) -> Watch:
    """Records histograms of a PyTorch model while it trains: gradients/NAME and parameters/NAME of each parameter. Their step is
    that of the next log.

    Args:
        model: A torch.nn.Module.
        log: "gradients", "parameters", "all", or None for nothing.
        log_freq: One in log_freq passes is recorded.
        prefix: A text in front of the names.
        record: Receives (key, histogram) in place of the run.
        run: The run; default: the active one.

    Returns:
        An object whose remove() ends the recording.

    Raises:
        ValueError: log has another value.
        Error: No run is active, or the package torch is missing.

    Example:
        >>> watch = dptrack.watch(model, log="all", log_freq=100)
    """
    _missing.need('dptrack.watch', 'torch', _error)
    kinds = {'gradients': (False, True), 'parameters': (True, False), 'all': (True, True), None: (False, False)}
    if log not in kinds:
        raise ValueError("watch: log is 'gradients', 'parameters' or 'all', not %r" % (log,))
    run = run or _run.active()
    if run is None and record is None:
        raise _run.Error('watch requires a run: call dptrack.init() first')
    if record is None:
        assert run is not None
        record = run.log_next_step
    return Watch(model, kinds[log], max(int(log_freq), 1), prefix, record)


def _histogram(tensor: Any) -> Histogram | None:
    """None where no value is finite."""
    values = tensor.detach().float().flatten()
    values = values.to_dense() if values.is_sparse else values
    values = values[torch.isfinite(values)]
    if not values.numel():
        return None
    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    counts = torch.histc(values, bins=BINS, min=low, max=high)
    return Histogram(np_histogram=(counts.tolist(), [low + (high - low) * i / BINS for i in range(BINS + 1)]))


class Watch:
    """The hooks of one model."""

    def __init__(self, model: Any, kinds: tuple[bool, bool], every: int, prefix: str, record: Callable[[str, Histogram], object]) -> None:
        self.every, self.prefix, self.record = every, prefix, record
        self.passes: dict[tuple[str, str], int] = {}
        self.hooks: list[Any] = []
        wants_parameters, wants_gradients = kinds
        if wants_parameters:
            self.hooks.append(model.register_forward_hook(self._forward))
        for name, parameter in model.named_parameters() if wants_gradients else ():
            if parameter.requires_grad:
                self.hooks.append(parameter.register_hook(self._gradient_of(name)))

    def _gradient_of(self, name: str) -> Callable[[Any], None]:
        return lambda gradient: self._take('gradients', name, gradient)

    def _is_due(self, of: tuple[str, str]) -> bool:
        self.passes[of] = self.passes.get(of, 0) + 1
        return self.passes[of] % self.every == 0

    def _forward(self, module: Any, inputs: Any, output: Any) -> None:
        if module.training:
            for name, parameter in module.named_parameters():
                self._take('parameters', name, parameter)

    def _take(self, kind: str, name: str, tensor: Any) -> None:
        if not self._is_due((kind, name)):
            return
        made = _histogram(tensor)
        if made is not None:
            self.record('%s/%s%s' % (kind, self.prefix, name), made)

    def remove(self) -> None:
        """Removes the hooks."""
        for hook in self.hooks:
            hook.remove()
        self.hooks = []

# SPDX-License-Identifier: Apache-2.0
"""Histograms of a PyTorch model's gradients and parameters while it trains."""
import torch

from dptrack import _run
from dptrack._media import Histogram

BINS = 64


def watch(model, log='gradients', log_freq=1000, prefix='', record=None, run=None):
    """Records gradients/NAME, parameters/NAME of each parameter, or both (log: 'gradients', 'parameters', 'all'), in one of
    log_freq passes of training: the step is that of the log that comes next. prefix: before the names. record: where the
    histograms go instead, as record(key, histogram). Returns an object whose remove() ends it."""
    kinds = {'gradients': (False, True), 'parameters': (True, False), 'all': (True, True), None: (False, False)}
    if log not in kinds:
        raise ValueError("watch: log is 'gradients', 'parameters' or 'all', not %r" % (log,))
    run = run or _run.active()
    if run is None and record is None:
        raise _run.Error('watch requires a run: call dptrack.init() first')
    return Watch(model, kinds[log], max(int(log_freq), 1), prefix, record or run.log_next_step)


def _histogram(tensor):
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

    def __init__(self, model, kinds, every, prefix, record):
        self.every, self.prefix, self.record = every, prefix, record
        self.passes, self.hooks = {}, []
        wants_parameters, wants_gradients = kinds
        if wants_parameters:
            self.hooks.append(model.register_forward_hook(self._forward))
        for name, parameter in model.named_parameters() if wants_gradients else ():
            if parameter.requires_grad:
                self.hooks.append(parameter.register_hook(lambda gradient, name=name: self._take('gradients', name, gradient)))

    def _is_due(self, of):
        self.passes[of] = self.passes.get(of, 0) + 1
        return self.passes[of] % self.every == 0

    def _forward(self, module, inputs, output):
        if module.training:
            for name, parameter in module.named_parameters():
                self._take('parameters', name, parameter)

    def _take(self, kind, name, tensor):
        if not self._is_due((kind, name)):
            return
        made = _histogram(tensor)
        if made is not None:
            self.record('%s/%s%s' % (kind, self.prefix, name), made)

    def remove(self):
        """Removes the hooks."""
        for hook in self.hooks:
            hook.remove()
        self.hooks = []

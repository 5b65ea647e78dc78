# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer:

    trainer = Trainer(..., callbacks=[dptrack.transformers.Callback(experiment="glue")])

begins a run with the first step, or uses the one that init began; its params are the model's configuration and the Trainer's
arguments, its series what the Trainer logs (train/loss, eval/loss, ...). The run stays open after train, so that what evaluate
says belongs to it, until dptrack.finish, the next training or the end of the process."""
from transformers import TrainerCallback

import dptrack
from dptrack._run import active


def _key(name):
    for group in ('eval', 'test'):
        if name.startswith(group + '_'):
            return '%s/%s' % (group, name[len(group) + 1:])
    return name if name == 'epoch' else 'train/' + name


class Callback(TrainerCallback):
    """options are init's."""

    def __init__(self, **options):
        self._options, self._mine = options, None

    def on_train_begin(self, args, state, control, model=None, **named):
        if self._mine is not None and self._mine is active() and state.global_step == 0:
            dptrack.finish()
        config = dict(model.config.to_dict() if hasattr(model, 'config') else {}, **args.to_sanitized_dict())
        if active() is None:
            self._mine = dptrack.init(**dict({'run_name': args.run_name}, **self._options))
        active().config.update(config)

    def on_log(self, args, state, control, logs=None, **named):
        run = active()
        if run is None or not state.is_world_process_zero:
            return
        values = {_key(name): value for name, value in (logs or {}).items() if isinstance(value, (int, float))}
        if values:
            run.log(values, step=state.global_step)

# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer:

    import dptrack.transformers

    arguments = TrainingArguments(..., report_to="dptrack", run_name="first")

or with options of its own:

    trainer = Trainer(..., callbacks=[dptrack.transformers.Callback(experiment="glue")])

The first step starts a run, unless init has started one. The model's configuration and the Trainer's arguments are its
params; what the Trainer logs (train/loss, eval/loss, ...) are its series. The run stays open after train, so that evaluate
belongs to it, until dptrack.finish, the next training or the end of the process."""
from __future__ import annotations

from dptrack import _init, _missing
from dptrack._run import active

try:
    from transformers import TrainerCallback
    from transformers.integrations import integration_utils as _registry
except ImportError as _error:
    TrainerCallback, _registry = _missing.base('transformers', _error), None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dptrack._run import ConfigLike, Run, TagsLike


def _key(name: str) -> str:
    for group in ('eval', 'test'):
        if name.startswith(group + '_'):
            return '%s/%s' % (group, name[len(group) + 1:])
    return name if name == 'epoch' else 'train/' + name


class Callback(TrainerCallback):  # type: ignore[misc]
    """Records a training of Hugging Face's Trainer.

    Args:
        experiment: The experiment; default: $DPTRACK_EXPERIMENT, or "default".
        run_name: The run's name; default: the Trainer's run_name.
        config: Params in addition to the Trainer's.
        tags: Tags, as init takes them.
        notes: A note in Markdown.
        runs_dir: The folder of runs; default: $DPTRACK_RUNS_DIR, or "runs".
        run_id: An id of 32 hex digits; an existing run is resumed.
        resume: "auto" or True, as init takes it.
        url: A server that also receives the run; default: $DPTRACK_URL.
        mode: "disabled" records nothing.
        console: False does not record what the program prints.
        code: False does not record commit, diff and packages.
        system: Seconds between samples of the machine's load; 0: none.

    Raises:
        Error: The package transformers is missing.

    Example:
        >>> trainer = Trainer(model, arguments, callbacks=[dptrack.transformers.Callback(experiment="glue")])
    """

    def __init__(self, experiment: str | None = None, run_name: str | None = None, config: ConfigLike = None, tags: TagsLike = None,
                 notes: str | None = None, runs_dir: str | None = None, run_id: str | None = None, resume: bool | str | None = None,
                 url: str | None = None, mode: str | None = None, console: bool | None = None, code: bool | None = None,
                 system: float | None = None) -> None:
        super().__init__()
        self._options = _init.given(experiment=experiment, run_name=run_name, config=config, tags=tags, notes=notes, runs_dir=runs_dir,
                                    run_id=run_id, resume=resume, url=url, mode=mode, console=console, code=code, system=system)
        self._mine: Run | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **named: Any) -> None:
        """Starts the run. Called by the Trainer."""
        config = dict(model.config.to_dict() if hasattr(model, 'config') else {}, **args.to_sanitized_dict())
        self._mine = _init.of_trainer(self._mine, dict({'run_name': args.run_name}, **self._options), state.global_step == 0)
        self._mine.config.update(config)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **named: Any) -> None:
        """Records what the Trainer logs. Called by the Trainer."""
        run = active()
        if run is None or not state.is_world_process_zero:
            return
        values = {_key(name): value for name, value in (logs or {}).items() if isinstance(value, (int, float))}
        if values:
            run.log(values, step=state.global_step)


# report_to="dptrack" makes a Callback() of this class.
if _registry is not None:
    _registry.INTEGRATION_TO_CALLBACK['dptrack'] = Callback

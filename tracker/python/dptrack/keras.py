# SPDX-License-Identifier: Apache-2.0
"""Keras 3:

    model.fit(..., callbacks=[dptrack.keras.Callback(experiment="mnist")])

records the values of each epoch (epoch/train_loss, epoch/val_loss, ...) and the learning rate, and as params the optimizer's
settings, the model's name and its size. The run stays open after fit, so that it records evaluate too, until dptrack.finish,
the next fit or the end of the process."""
from __future__ import annotations

from dptrack import _init, _missing
from dptrack._run import active

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import keras
    from keras.callbacks import Callback as _Base

    from dptrack._run import ConfigLike, Run, TagsLike
else:
    try:
        import keras
        from keras.callbacks import Callback as _Base
    except ImportError as _error:
        _Base = _missing.base('keras', _error)


class Callback(_Base):  # type: ignore[misc]
    """Records a training of Keras. fit starts a run, unless init has started one.

    Args:
        every: Also records train/KEY of one in every batches, at the optimizer's step; Keras passes means since the start of
            the epoch. Default: no batches.
        experiment: The experiment; default: $DPTRACK_EXPERIMENT, or "default".
        run_name: The run's name; default: the model's.
        config: Params in addition to the optimizer's.
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
        Error: The package keras is missing.

    Example:
        >>> model.fit(x, y, callbacks=[dptrack.keras.Callback(experiment="mnist", every=50)])
    """

    def __init__(self, every: int | None = None, experiment: str | None = None, run_name: str | None = None, config: ConfigLike = None,
                 tags: TagsLike = None, notes: str | None = None, runs_dir: str | None = None, run_id: str | None = None,
                 resume: bool | str | None = None, url: str | None = None, mode: str | None = None, console: bool | None = None,
                 code: bool | None = None, system: float | None = None) -> None:
        super().__init__()
        self._options = _init.given(experiment=experiment, run_name=run_name, config=config, tags=tags, notes=notes, runs_dir=runs_dir,
                                    run_id=run_id, resume=resume, url=url, mode=mode, console=console, code=code, system=system)
        self._every, self._fits = every, False
        self._mine: Run | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts the run. Called by fit."""
        self._mine = _init.of_trainer(self._mine, dict({'run_name': self.model.name}, **self._options))
        self._mine.config.update(self._settings())
        self._fits = True

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Called at the end of fit."""
        self._fits = False

    def _settings(self) -> dict[str, Any]:
        optimizer = self.model.optimizer
        settings = {name: value for name, value in optimizer.get_config().items() if value is not None}
        settings['learning_rate'] = float('%.7g' % self._learning_rate())  # 0.01, of which Keras keeps 32 bits
        params = {'model': self.model.name, 'parameters': self.model.count_params(), 'optimizer': settings}
        params.update((name, value) for name, value in (self.params or {}).items() if name in ('epochs', 'steps') and value is not None)
        return params

    def _step(self) -> int:
        return int(keras.ops.convert_to_numpy(self.model.optimizer.iterations))

    def _learning_rate(self) -> float:
        return float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Records one in `every` batches. Called by fit."""
        step, run = self._step(), active()
        if run is not None and self._every and step % self._every == 0:
            run.log(dict({'train/' + key: value for key, value in (logs or {}).items()}, **{'train/lr': self._learning_rate()}), step=step)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Records the values of the epoch. Called by fit."""
        run = active()
        if run is None:
            return
        values = {'epoch/' + (key if key.startswith('val_') else 'train_' + key): value for key, value in (logs or {}).items()}
        run.log(values, step=epoch + 1)
        run.log({'train/lr': self._learning_rate()}, step=self._step())

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Records the values of evaluate. Called by evaluate, and by fit."""
        run = active()
        if run is not None and logs and not self._fits:
            run.log({'test/' + key: value for key, value in logs.items()}, step=self._step())

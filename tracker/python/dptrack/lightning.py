# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer:

    trainer = Trainer(logger=dptrack.lightning.Logger(experiment="mnist"))

records what modules log, their hyperparameters as params, and how the training ended."""
from __future__ import annotations

from dptrack import _init, _missing, _values
from dptrack._run import init

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dptrack._run import ConfigLike, Run, TagsLike

try:
    from lightning.pytorch.loggers.logger import Logger as _Base, rank_zero_experiment as _rank_zero
except ImportError as _error:
    try:
        from pytorch_lightning.loggers.logger import Logger as _Base, rank_zero_experiment as _rank_zero
    except ImportError:
        _Base, _rank_zero = _missing.base('lightning', _error), _missing.same


class Logger(_Base):  # type: ignore[misc]
    """Records a training of Lightning's Trainer.

    Args:
        experiment: The experiment; default: $DPTRACK_EXPERIMENT, or "default".
        run_name: The run's name; default: one made from its id.
        config: Params in addition to the hyperparameters.
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
        Error: The package lightning is missing.

    Example:
        >>> trainer = lightning.Trainer(logger=dptrack.lightning.Logger(experiment="mnist"))
    """

    def __init__(self, experiment: str | None = None, run_name: str | None = None, config: ConfigLike = None, tags: TagsLike = None,
                 notes: str | None = None, runs_dir: str | None = None, run_id: str | None = None, resume: bool | str | None = None,
                 url: str | None = None, mode: str | None = None, console: bool | None = None, code: bool | None = None,
                 system: float | None = None) -> None:
        super().__init__()
        self._options = _init.given(experiment=experiment, run_name=run_name, config=config, tags=tags, notes=notes, runs_dir=runs_dir,
                                    run_id=run_id, resume=resume, url=url, mode=mode, console=console, code=code, system=system)
        self._run: Run | None = None

    @property
    def name(self) -> str:
        """The experiment."""
        return self._options.get('experiment') or 'default'

    @property
    def version(self) -> str | None:
        """The run's id, once it has started."""
        return self._run.id if self._run is not None else None

    @property
    def save_dir(self) -> str | None:
        """The run's folder, once it has started."""
        return self._run.dir if self._run is not None else None

    @property
    @_rank_zero  # type: ignore[untyped-decorator,unused-ignore]
    def experiment(self) -> Run:
        """The run; the first use starts it."""
        if self._run is None:
            self._run = init(**self._options)
        return self._run

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Records numbers. Called by the Trainer."""
        self.experiment.log(metrics, step=step)

    def log_hyperparams(self, params: Any, *more: Any, **named: Any) -> None:
        """Records hyperparameters as params. Called by the Trainer."""
        self.experiment.config.update(_values.as_mapping(params))

    def finalize(self, status: str) -> None:
        """Finishes the run. Called by the Trainer."""
        if self._run is not None:
            self._run.finish('finished' if status == 'success' else 'failed')

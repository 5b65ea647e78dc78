# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer:

    trainer = Trainer(logger=dptrack.lightning.Logger(experiment="mnist"))

records what modules log, their hyperparameters as params, and how the training ended."""
try:
    from lightning.pytorch.loggers.logger import Logger as _Base, rank_zero_experiment
except ImportError:
    from pytorch_lightning.loggers.logger import Logger as _Base, rank_zero_experiment

from dptrack import _values
from dptrack._run import init


class Logger(_Base):
    """options are init's. experiment (the property) is the run, begun when it is first asked for."""

    def __init__(self, **options):
        super().__init__()
        self._options, self._run = options, None

    @property
    def name(self):
        return self._options.get('experiment') or 'default'

    @property
    def version(self):
        return self._run.id if self._run is not None else None

    @property
    def save_dir(self):
        return self._run.dir if self._run is not None else None

    @property
    @rank_zero_experiment
    def experiment(self):
        if self._run is None:
            self._run = init(**self._options)
        return self._run

    def log_metrics(self, metrics, step=None):
        self.experiment.log(metrics, step=step)

    def log_hyperparams(self, params, *more, **named):
        self.experiment.config.update(_values.as_mapping(params))

    def finalize(self, status):
        if self._run is not None:
            self._run.finish('finished' if status == 'success' else 'failed')

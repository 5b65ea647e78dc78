# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Accelerate:

    accelerator = Accelerator(log_with=dptrack.accelerate.Tracker(experiment="mnist"))
    accelerator.init_trackers("", config={"lr": 0.1})

records what accelerator.log is given, the config as params; the run ends with accelerator.end_training."""
from accelerate.tracking import GeneralTracker, on_main_process

import dptrack


class Tracker(GeneralTracker):
    """options are init's. Accelerate hands its trackers no name of the project: say experiment= here."""

    name = 'dptrack'
    requires_logging_directory = False

    def __init__(self, **options):
        super().__init__()
        self._options, self._run = options, None

    @on_main_process
    def start(self):
        """Accelerate calls it from init_trackers."""
        self._run = dptrack.init(**self._options)

    @property
    def tracker(self):
        return self._run

    @on_main_process
    def store_init_configuration(self, values):
        """values: what init_trackers was given as config."""
        self._run.config.update(values)

    @on_main_process
    def log(self, values, step=None, **left):
        """values: numbers, media or nested mappings of both."""
        self._run.log(values, step=step)

    @on_main_process
    def log_images(self, values, step=None, **left):
        """values: {key: pictures}."""
        self._run.log({key: [dptrack.Image(one) for one in pictures] for key, pictures in values.items()}, step=step)

    @on_main_process
    def log_table(self, table_name, columns=None, data=None, dataframe=None, step=None, **left):
        """As dptrack.Table."""
        self._run.log({table_name: dptrack.Table(columns=columns, data=data, dataframe=dataframe)}, step=step)

    @on_main_process
    def finish(self):
        """Accelerate calls it from end_training."""
        self._run.finish()

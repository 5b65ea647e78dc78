# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Accelerate:

    accelerator = Accelerator(log_with=dptrack.accelerate.Tracker(experiment="mnist"))
    accelerator.init_trackers("", config={"lr": 0.1})

records what accelerator.log is given, and the config as params. accelerator.end_training finishes the run."""
from __future__ import annotations

import dptrack
from dptrack import _init, _missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from dptrack._run import ConfigLike, Run, TagsLike

try:
    from accelerate.tracking import GeneralTracker, on_main_process as _on_main
except ImportError as _error:
    GeneralTracker, _on_main = _missing.base('accelerate', _error), _missing.same


class Tracker(GeneralTracker):  # type: ignore[misc]
    """Records a training with Accelerate. Accelerate passes no project name to trackers: set experiment here.

    Args:
        experiment: The experiment; default: $DPTRACK_EXPERIMENT, or "default".
        run_name: The run's name; default: one made from its id.
        config: Params in addition to those of init_trackers.
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
        Error: The package accelerate is missing.

    Example:
        >>> accelerator = Accelerator(log_with=dptrack.accelerate.Tracker(experiment="mnist"))
        >>> accelerator.init_trackers("", config={"lr": 0.1})
    """

    name = 'dptrack'
    requires_logging_directory = False

    def __init__(self, experiment: str | None = None, run_name: str | None = None, config: ConfigLike = None, tags: TagsLike = None,
                 notes: str | None = None, runs_dir: str | None = None, run_id: str | None = None, resume: bool | str | None = None,
                 url: str | None = None, mode: str | None = None, console: bool | None = None, code: bool | None = None,
                 system: float | None = None) -> None:
        super().__init__()
        self._options = _init.given(experiment=experiment, run_name=run_name, config=config, tags=tags, notes=notes, runs_dir=runs_dir,
                                    run_id=run_id, resume=resume, url=url, mode=mode, console=console, code=code, system=system)
        self._run: Run | None = None

    @_on_main  # type: ignore[untyped-decorator,unused-ignore]
    def start(self) -> None:
        """Starts the run. Called by init_trackers."""
        self._run = dptrack.init(**self._options)

    @property
    def tracker(self) -> Run | None:
        """The run, once it has started."""
        return self._run

    def _started(self) -> Run:
        if self._run is None:
            raise dptrack.Error('dptrack.accelerate.Tracker has no run: call accelerator.init_trackers first')
        return self._run

    @_on_main  # type: ignore[untyped-decorator,unused-ignore]
    def store_init_configuration(self, values: ConfigLike) -> None:
        """Records the config of init_trackers as params."""
        self._started().config.update(values)

    @_on_main  # type: ignore[untyped-decorator,unused-ignore]
    def log(self, values: Mapping[str, Any], step: int | None = None, **ignored: Any) -> None:
        """Records numbers, media or nested mappings of both."""
        self._started().log(values, step=step)

    @_on_main  # type: ignore[untyped-decorator,unused-ignore]
    def log_images(self, values: Mapping[str, Sequence[Any]], step: int | None = None, **ignored: Any) -> None:
        """Records {key: images}, each as dptrack.Image takes it."""
        self._started().log({key: [dptrack.Image(one) for one in images] for key, images in values.items()}, step=step)

    @_on_main  # type: ignore[untyped-decorator,unused-ignore]
    def log_table(self, table_name: str, columns: Sequence[str] | None = None, data: Sequence[Sequence[Any]] | None = None,
                  dataframe: Any = None, step: int | None = None, **ignored: Any) -> None:
        """Records a dptrack.Table."""
        self._started().log({table_name: dptrack.Table(columns=columns, data=data, dataframe=dataframe)}, step=step)

    @_on_main  # type: ignore[untyped-decorator,unused-ignore]
    def finish(self) -> None:
        """Finishes the run. Called by end_training."""
        self._started().finish()

# SPDX-License-Identifier: Apache-2.0
"""Keras 3:

    model.fit(..., callbacks=[dptrack.keras.Callback(experiment="mnist")])

records after every epoch what Keras says of it (epoch/train_loss, epoch/val_loss, ...) and the learning rate, and as params the
optimizer's settings, the model's name and size. The run stays open after fit, so that it records evaluate too, until
dptrack.finish, the next fit or the end of the process."""
import keras

import dptrack
from dptrack._run import active


class Callback(keras.callbacks.Callback):
    """options are init's; they begin a run with fit where there is none. every: also train/KEY of every so many batches, with
    the optimizer's number of the step; Keras gives means since the epoch's begin."""

    def __init__(self, every=None, **options):
        super().__init__()
        self._options, self._every, self._mine, self._fits = options, every, None, False

    def on_train_begin(self, logs=None):
        if self._mine is not None and self._mine is active():
            dptrack.finish()
        if active() is None:
            self._mine = dptrack.init(**dict({'run_name': self.model.name}, **self._options))
        active().config.update(self._settings())
        self._fits = True

    def on_train_end(self, logs=None):
        self._fits = False

    def _settings(self):
        optimizer = self.model.optimizer
        settings = {name: value for name, value in optimizer.get_config().items() if value is not None}
        settings['learning_rate'] = float('%.7g' % self._learning_rate())  # 0.01, of which Keras keeps 32 bits
        params = {'model': self.model.name, 'parameters': self.model.count_params(), 'optimizer': settings}
        params.update((name, value) for name, value in (self.params or {}).items() if name in ('epochs', 'steps') and value is not None)
        return params

    def _step(self):
        return int(keras.ops.convert_to_numpy(self.model.optimizer.iterations))

    def _learning_rate(self):
        return float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))

    def on_train_batch_end(self, batch, logs=None):
        step, run = self._step(), active()
        if run is not None and self._every and step % self._every == 0:
            run.log(dict({'train/' + key: value for key, value in (logs or {}).items()}, **{'train/lr': self._learning_rate()}), step=step)

    def on_epoch_end(self, epoch, logs=None):
        run = active()
        if run is None:
            return
        values = {'epoch/' + (key if key.startswith('val_') else 'train_' + key): value for key, value in (logs or {}).items()}
        run.log(values, step=epoch + 1)
        run.log({'train/lr': self._learning_rate()}, step=self._step())

    def on_test_end(self, logs=None):
        run = active()
        if run is not None and logs and not self._fits:
            run.log({'test/' + key: value for key, value in logs.items()}, step=self._step())

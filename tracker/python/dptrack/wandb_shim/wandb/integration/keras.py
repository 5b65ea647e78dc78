# SPDX-License-Identifier: Apache-2.0
"""W&B's callback of numbers for Keras, over whichever Keras the program uses."""
import keras

import wandb


class WandbMetricsLogger(keras.callbacks.Callback):
    """After every epoch epoch/KEY of what Keras says, with epoch/epoch (from 0) and epoch/learning_rate; with log_freq 'batch' or
    a number also after so many batches batch/KEY, with batch/batch_step, which then counts, and batch/learning_rate."""

    def __init__(self, log_freq='epoch', initial_global_step=0):
        super().__init__()
        if wandb.run is None:
            raise wandb.Error('You must call `wandb.init()` before WandbMetricsLogger()')
        self.every = 1 if log_freq == 'batch' else log_freq if isinstance(log_freq, int) else None
        self.global_step, self.batch_step = initial_global_step, 0
        kind, counter = ('batch', 'batch/batch_step') if self.every else ('epoch', 'epoch/epoch')
        wandb.define_metric(counter)
        wandb.define_metric(kind + '/*', step_metric=counter)

    def _learning_rate(self):
        rate = self.model.optimizer.learning_rate
        try:
            return float(keras.ops.convert_to_numpy(rate(self.global_step) if callable(rate) else rate))
        except Exception as error:  # a schedule of its own kind must not end the training
            wandb.termerror('the learning rate is not recorded: %s' % error)
            return None

    def _log(self, kind, counter, at, logs):
        row = {'%s/%s' % (kind, key): value for key, value in (logs or {}).items()}
        row[counter] = at
        rate = self._learning_rate()
        if rate is not None:
            row[kind + '/learning_rate'] = rate
        wandb.log(row)

    def on_epoch_end(self, epoch, logs=None):
        self._log('epoch', 'epoch/epoch', epoch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self.global_step += 1
        if self.every and batch % self.every == 0:
            self._log('batch', 'batch/batch_step', self.batch_step, logs)
            self.batch_step += self.every

/* SPDX-License-Identifier: Apache-2.0 */
/* tb_hparams.h: TensorBoard hparams folders. `add_hparams` of PyTorch and tensorboardX writes the hparams and metrics
 * of a run to a folder of its own below the run's. That is not a run, but a note on the run above. Trials of a search
 * look alike and are runs; there are several of them, or the folder above has no run. Used for followed and for
 * imported folders. */
#ifndef DPT_STORE_TB_HPARAMS_H
#define DPT_STORE_TB_HPARAMS_H

#include <stdbool.h>

enum tb_hparams {
	TB_HPARAMS_NO,   /* a run */
	TB_HPARAMS_YES,  /* a note on the run in the parent folder */
	TB_HPARAMS_LATER /* unknown yet: the parent folder has no data so far */
};

/* path: a foreign event file below root. wait: TB_HPARAMS_LATER is allowed. */
enum tb_hparams tb_hparams_find(const char *root, const char *path, bool wait);

#endif

/* tb_hparams.h: hparams that lie beside their run. `add_hparams` of PyTorch and tensorboardX opens a folder of its own
 * below the run's and writes there what it is given, ended at once, then the metrics: not a run, but words on the one
 * above. Trials of a search look the same and are runs; they come in numbers, or below a folder that holds none. A
 * followed folder and one that is imported are read alike. */
#ifndef DPT_STORE_TB_HPARAMS_H
#define DPT_STORE_TB_HPARAMS_H

#include <stdbool.h>

enum tb_hparams {
	TB_HPARAMS_NO,   /* a run */
	TB_HPARAMS_YES,  /* of the run of the folder above */
	TB_HPARAMS_LATER /* nobody can tell yet: what is above has said nothing so far */
};

/* path: an event file that others wrote, below root. wait: its answer may come later. */
enum tb_hparams tb_hparams_find(const char *root, const char *path, bool wait);

#endif

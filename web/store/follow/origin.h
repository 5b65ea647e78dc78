/* SPDX-License-Identifier: Apache-2.0 */
/* origin.h: what a file below a folder of runs is. Our journals name their run in the first record. Event files of
 * other programs are known by their first records, whatever their name; their folder is the run, and its path supplies
 * the names. */
#ifndef DPT_STORE_ORIGIN_H
#define DPT_STORE_ORIGIN_H

#include <limits.h>

#include "web/store/write/ingest.h"

#define ORIGIN_ID_BYTES 33
#define ORIGIN_SAME_DIGITS 24 /* digits shared by contents with equal first records; the rest may count these */

struct origin {
	bool known, foreign;
	bool annotates; /* belongs to the run in the parent folder: tb_hparams_find, origin_is_rank */
	char run[ORIGIN_ID_BYTES], writer[ORIGIN_ID_BYTES]; /* ids of our journals; the follower sets foreign ones */
	char content[ORIGIN_ID_BYTES];			    /* foreign: digest of the first records */
	char exported[ORIGIN_ID_BYTES]; /* the run that `dptrack export --events` made it of; "": none */
};

#define ORIGIN_HEAD_BYTES 4096 /* bytes read of a file's head; our first records are shorter */

/* head: the first n bytes, at most ORIGIN_HEAD_BYTES. 1: found, 0: too short yet (also foreign files with only a
 * version record), -1: not a file of runs. A foreign file is not `known` yet: its run is to be chosen. */
int origin_find(struct origin *ret, const char *path, const void *head, size_t n);

/* The same for bytes that are known to be a foreign file. */
void origin_content(char ret[ORIGIN_ID_BYTES], const void *head, size_t n);

/* Returns true for a file that `dptrack export --events` made for one rank: rank-N/….dptrack.SEGMENT. */
bool origin_is_rank(const char *path, int *ret_rank, int *ret_segment);

/* The folder that is the run of a foreign file: "." for the followed folder itself. */
void origin_folder(const struct origin *o, const char *path, char ret[PATH_MAX]);

/* The id of the first run in a folder. */
void origin_run_of_folder(char ret[ORIGIN_ID_BYTES], const char *folder);

/* Names for the run of a foreign file; root: name of the followed folder, for files directly in it. The texts are in
 * room or borrowed. */
struct origin_room {
	char folder[PATH_MAX], first[PATH_MAX];
};

void origin_names(const struct origin *o, const char *path, const char *root, struct ingest_foreign *ret,
		  struct origin_room *room);

/* ---- tb_hparams.c ----
 * TensorBoard hparams folders. `add_hparams` of PyTorch and tensorboardX writes the hparams and metrics of a run to a
 * folder of its own below the run's. That is not a run, but a note on the run above. Trials of a search look alike and
 * are runs; there are several of them, or the folder above has no event files. Used for followed and for imported
 * folders. */

enum tb_hparams {
	TB_HPARAMS_NO,	 /* a run */
	TB_HPARAMS_YES,	 /* a note on the run in the parent folder */
	TB_HPARAMS_LATER /* unknown yet: the session is not over, or has just been written */
};

/* path: a foreign event file below root. wait: TB_HPARAMS_LATER is allowed. */
enum tb_hparams tb_hparams_find(const char *root, const char *path, bool wait);

#endif

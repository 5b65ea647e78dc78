/* syncer.h: waits for the disk in a thread of its own, so that a slow one delays neither the writer's next batch nor
 * what followers see. */
#ifndef DPT_RUN_SYNCER_H
#define DPT_RUN_SYNCER_H

#include <stdbool.h>

#include "tracker/base/err.h"
#include "tracker/run/warn.h"

struct syncer;

/* warn is borrowed until syncer_stop. */
int syncer_start(struct syncer **ret, struct warn *warn, struct err *err);

/* Whether a sync is due: about a second after the last one, and at most a tenth of the time of a slow disk. */
bool syncer_due(struct syncer *s);

/* Syncs the file behind fd, which now belongs to the syncer; only when one was due. */
void syncer_post(struct syncer *s, int fd);

/* Waits for the one under way, syncs the file behind fd (which now belongs to the syncer; -1: none), ends. ERR_IO when
 * that file has no name any more; a disk that cannot sync is only warned of. */
int syncer_stop(struct syncer *s, int fd, struct err *err);

#endif

/* syncer.h: syncs the journal in a background thread, so that a slow disk delays neither the writer's next batch nor
 * readers. */
#ifndef DPT_RUN_SYNCER_H
#define DPT_RUN_SYNCER_H

#include <stdbool.h>

#include "tracker/base/err.h"
#include "tracker/run/warn.h"

struct syncer;

/* warn is borrowed until syncer_stop. */
int syncer_start(struct syncer **ret, struct warn *warn, struct err *err);

/* Returns true if a sync is due: about a second after the last one, using at most a tenth of the time of a slow
 * disk. */
bool syncer_due(struct syncer *s);

/* Syncs and closes fd in the background. Call it only when a sync is due. */
void syncer_post(struct syncer *s, int fd);

/* Waits for the current sync, syncs and closes fd (-1: none), and ends the thread. Returns ERR_IO if that file has been
 * unlinked; a failed sync only causes a warning. */
int syncer_stop(struct syncer *s, int fd, struct err *err);

#endif

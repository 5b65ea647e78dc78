/* export_events.h: runs back into event files that TensorBoard and others read. */
#ifndef DPT_CLI_EXPORT_EVENTS_H
#define DPT_CLI_EXPORT_EVENTS_H

#include "web/cli/source.h"

/* Writes DIR/<experiment>/<name>-<8 digits of the id>/events.out.tfevents.… of the run `id` (32 digits), and one more in
 * rank-R/ below it for each rank's own series. Points stand in the order of the store, series by series, with their step,
 * wall time and value; params become hparams, notes a text. segments (may be NULL) as in the REST API. */
int export_events(struct source *s, const char *dir, const char *id, const char *segments, struct err *err);

#endif

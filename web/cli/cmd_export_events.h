/* cmd_export_events.h: runs back into event files that TensorBoard and others read. */
#ifndef DPT_CLI_CMD_EXPORT_EVENTS_H
#define DPT_CLI_CMD_EXPORT_EVENTS_H

#include "web/cli/source.h"

/* Writes DIR/<experiment>/<name>-<8 digits of the id>/events.out.tfevents.… of the run `id` (32 digits), one file a
 * segment, and the same in rank-R/ below it for each rank's own series. What an imported file brought stands in its
 * order, other points by their time. Params become hparams, notes a text. A file gets its name when it is whole. */
int export_events(struct source *s, const char *dir, const char *id, struct err *err);

#endif

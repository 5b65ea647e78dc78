/* cmd_export_events.h: exports runs as event files for TensorBoard and other readers. */
#ifndef DPT_CLI_CMD_EXPORT_EVENTS_H
#define DPT_CLI_CMD_EXPORT_EVENTS_H

#include "web/cli/source.h"

/* Writes the event files of the run `id` (32 digits): DIR/<experiment>/<name>-<8 digits of the
 * id>/events.out.tfevents.…, one file for each segment. The subfolder rank-R/ has the same for each rank's own series.
 * Points of an imported file keep its order, others are ordered by time. Params become hparams, notes a text. A file
 * gets its final name when it is complete. */
int export_events(struct source *s, const char *dir, const char *id, struct err *err);

#endif

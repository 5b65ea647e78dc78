/* import_events.h: imports folders of event files of TensorBoard's writers. */
#ifndef DPT_CLI_BRING_IMPORT_EVENTS_H
#define DPT_CLI_BRING_IMPORT_EVENTS_H

#include "web/cli/import/importer.h"

/* Imports all files and prints a summary. ERR_USAGE: there are no event files of other programs. */
int events_import(struct importer *b, const char *from, struct err *err);

#endif

/* import_events.h: folders of event files, as TensorBoard's writers leave them. */
#ifndef DPT_CLI_BRING_IMPORT_EVENTS_H
#define DPT_CLI_BRING_IMPORT_EVENTS_H

#include "web/cli/import/importer.h"

/* Brings all in and says what; ERR_USAGE: there is nothing of other programs. */
int events_import(struct importer *b, const char *from, struct err *err);

#endif

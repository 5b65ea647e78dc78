/* events.h: folders of event files, as TensorBoard's writers leave them. */
#ifndef DPT_CLI_BRING_EVENTS_H
#define DPT_CLI_BRING_EVENTS_H

#include "web/cli/bring/bring.h"

/* Brings all in and says what; ERR_USAGE: there is nothing of other programs. */
int events_import(struct bring *b, const char *from, struct err *err);

#endif

/* cmd_diagnosis.h: prints what limits the speed of a run. */
#ifndef DPT_CLI_CMD_DIAGNOSIS_H
#define DPT_CLI_CMD_DIAGNOSIS_H

#include "web/cli/source.h"

/* Prints nothing for a run that cannot be diagnosed. */
void diagnosis_print(struct source *s, const char *id);

#endif

/* cmd_diagnosis.h: what makes a run slow, in lines for people. */
#ifndef DPT_CLI_CMD_DIAGNOSIS_H
#define DPT_CLI_CMD_DIAGNOSIS_H

#include "web/cli/source.h"

/* Prints nothing for a run that cannot be judged. */
void diagnosis_print(struct source *s, const char *id);

#endif

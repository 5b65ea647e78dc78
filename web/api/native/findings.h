/* findings.h: writes the findings of a check of the store as JSON. */
#ifndef DPT_NATIVE_FINDINGS_H
#define DPT_NATIVE_FINDINGS_H

#include <stdbool.h>

#include "web/api/js.h"
#include "web/store/maintenance/maintenance.h"

/* Writes the members worst, checked_time and findings; without texts for callers who may only see the levels. */
void findings_write(struct js *j, const struct check_report *r, bool texts);

#endif

/* findings.h: what a check of the store found, as JSON. */
#ifndef DPT_NATIVE_FINDINGS_H
#define DPT_NATIVE_FINDINGS_H

#include <stdbool.h>

#include "web/api/js.h"
#include "web/store/maintenance/check.h"

/* The members worst, checked_time and findings; without texts for those who may only know how it is. */
void findings_write(struct js *j, const struct check_report *r, bool texts);

#endif

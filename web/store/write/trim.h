/* trim.h: what a burst of writes took goes back to the system when it is over: free pages of the store's file beyond a
 * reserve, and memory of the process. The writer's thread alone. */
#ifndef DPT_STORE_TRIM_H
#define DPT_STORE_TRIM_H

#include <stdbool.h>

#include "web/store/db/db.h"

struct trim {
	bool some; /* may be there: something was committed since */
	double trimmed_s;
};

void trim_trim(struct trim *s);                     /* memory, where it is long ago */
void trim_give_back(struct trim *s, struct db *d);  /* in a pause; `some` is set while there is more */
void trim_shrink(struct db *d);                      /* at the end nothing is kept, as far as that is quick */

#endif

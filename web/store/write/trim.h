/* trim.h: returns what a burst of writes used to the system: free pages of the store's file beyond a reserve, and
 * memory of the process. Writer's thread only. */
#ifndef DPT_STORE_TRIM_H
#define DPT_STORE_TRIM_H

#include <stdbool.h>

#include "web/store/db/db.h"

struct trim {
	bool some; /* something was committed: there may be something to return */
	double trimmed_s;
};

void trim_trim(struct trim *s);		     /* returns memory, when the last time was long ago */
void trim_give_back(struct trim *s, struct db *d); /* in a pause; leaves `some` set while there is more */
void trim_shrink(struct db *d);		     /* at the end: all free pages, for at most a second */

#endif

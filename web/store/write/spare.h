/* spare.h: what a burst of writes took goes back to the system when it is over: free pages of the store's file beyond a
 * reserve, and memory of the process. The writer's thread alone. */
#ifndef DPT_STORE_SPARE_H
#define DPT_STORE_SPARE_H

#include <stdbool.h>

#include "web/store/db/db.h"

struct spare {
	bool some; /* may be there: something was committed since */
	double trimmed_s;
};

void spare_trim(struct spare *s);                     /* memory, where it is long ago */
void spare_give_back(struct spare *s, struct db *d);  /* in a pause; `some` is set while there is more */
void spare_shrink(struct db *d);                      /* at the end nothing is kept, as far as that is quick */

#endif

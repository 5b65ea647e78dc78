/* copy_rows.h: copies the file of a store page by page. The same connection may write the source between steps. */
#ifndef DPT_STORE_COPY_ROWS_H
#define DPT_STORE_COPY_ROWS_H

#include <stdbool.h>

#include "web/store/db/db.h"

struct db_copy;

int copy_new(struct db_copy **ret, struct db *to, struct db *from, struct err *err); /* to and from must outlive it */
void copy_free(struct db_copy *c);						     /* NULL is fine */

/* Copies some pages. A locked file is not a failure: the step does nothing; call it again. */
int copy_step(struct db_copy *c, int pages, bool *ret_done, struct err *err);

#endif

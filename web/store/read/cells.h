/* cells.h: the values of a search's fields for a run: from the store's columns, or by queries where the search names
 * its runs. Private to web/store. */
#ifndef DPT_STORE_CELLS_H
#define DPT_STORE_CELLS_H

#include "web/store/db/db.h"
#include "web/store/filter/filter.h"
#include "web/store/read/columns.h"

struct cells_experiment {
	int64_t id;
	const char *name;
};

/* d and a (texts of queries) belong to the search. */
struct cells {
	struct db *d;
	struct arena *a;
	const struct filter *f;
	bool mlflow;
	const struct columns_row *base; /* of the columns; NULL: rows are read by queries */
	const struct columns_cell *columns[FILTER_MAX_FIELDS]; /* NULL: no run has the key, or the field is not a
							        * column */
	int64_t key[FILTER_MAX_FIELDS]; /* without columns; 0: no run has the key */
	struct cells_experiment *experiments; /* by id; loaded only if a field uses them */
	size_t experiment_count;
};

/* columns: taken until the last cell is read; NULL: cells are read from d. */
int cells_begin(struct cells *c, struct columns *columns, struct err *err);

/* Texts are borrowed from the columns or the arena. */
int cells_get(struct cells *c, const struct columns_row *r, size_t field, struct filter_value *ret, struct err *err);

#endif

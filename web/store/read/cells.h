/* cells.h: what a field of a search says of a run: from the store's columns, or by a query where the search names its
 * runs. Private to web/store. */
#ifndef DPT_STORE_CELLS_H
#define DPT_STORE_CELLS_H

#include "web/store/db/db.h"
#include "web/store/filter/filter.h"
#include "web/store/read/columns.h"

struct cells_experiment {
	int64_t id;
	const char *name;
};

/* d and a (texts of queries) are the search's. */
struct cells {
	struct db *d;
	struct arena *a;
	const struct filter *f;
	bool mlflow;
	const struct columns_row *base; /* of the columns; NULL: rows are others */
	const struct columns_cell *columns[FILTER_MAX_FIELDS]; /* NULL: no run has it, or it is none of theirs */
	int64_t key[FILTER_MAX_FIELDS]; /* without columns; 0: no run has it */
	struct cells_experiment *experiments; /* by id; only where a field names them */
	size_t experiment_count;
};

/* columns: held, until the last cell was read; NULL: cells are read from d. */
int cells_begin(struct cells *c, struct columns *columns, struct err *err);

/* Texts are those of the columns, or the arena's. */
int cells_get(struct cells *c, const struct columns_row *r, size_t field, struct filter_value *ret, struct err *err);

#endif

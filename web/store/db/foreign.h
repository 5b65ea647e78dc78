/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.h: reads a SQLite file of another program (MLflow's store) with the queries of schema/sql/mlflow.sql.
 * Never writes to it; the file may be in use. One thread at a time. */
#ifndef DPT_STORE_FOREIGN_H
#define DPT_STORE_FOREIGN_H

#include "tracker/base/err.h"

enum foreign_query {
#define SQL_QUERY(name, text) FOREIGN_##name,
#include "web/store/db/mlflow.def"
#undef SQL_QUERY
	FOREIGN_QUERY_COUNT
};

/* FOREIGN_<query>_<column> */
enum foreign_column {
#define SQL_COLUMN(query, column, number) FOREIGN_##query##_##column = number,
#include "web/store/db/mlflow_columns.def"
#undef SQL_COLUMN
};

struct foreign;
struct foreign_rows; /* the rows of one query; each query runs once at a time */

bool foreign_is_sqlite(const char *path); /* checks the magic of the file */

/* All reads see the state of this moment. ERR_CORRUPT: not a SQLite file. */
int foreign_open(struct foreign **ret, const char *path, struct err *err);
void foreign_close(struct foreign *f); /* NULL is fine */

bool foreign_has(struct foreign *f, const char *table);

/* A query with one text and one integer, as far as it has parameters; without a text its first one is the number. */
struct foreign_question {
	enum foreign_query q;
	const char *text;
	int64_t number;
};

/* foreign_next steps: 1 a row, 0 the end, negative: failed. */
int foreign_start(struct foreign *f, struct foreign_rows **ret, const struct foreign_question *of, struct err *err);
int foreign_next(struct foreign_rows *r, struct err *err);

/* The current row. Texts are valid until the next foreign_next. */
const char *foreign_str(struct foreign_rows *r, enum foreign_column column); /* NULL: "" */
int64_t foreign_i64(struct foreign_rows *r, enum foreign_column column);     /* NULL: 0 */
double foreign_f64(struct foreign_rows *r, enum foreign_column column);	     /* NULL: NaN */
bool foreign_null(struct foreign_rows *r, enum foreign_column column);
bool foreign_number(struct foreign_rows *r, enum foreign_column column); /* false: a text, bytes or NULL */

#endif

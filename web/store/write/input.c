/* input.c: rows of data sets and of their uses. */
#include "web/store/write/input.h"

static int put_dataset(struct state *st, int64_t experiment, const struct ingest_dataset *d, int64_t *ret,
		       struct err *err)
{
	int rc = db_run(state_db(st), DB_dataset_add, err, "itttttt", experiment, d->name, d->digest, d->source_type,
			d->source, d->schema, d->profile);

	if (rc)
		return rc;
	rc = db_int(state_db(st), ret, DB_dataset_find, err, "itt", experiment, d->name, d->digest);
	return rc > 0 ? 0 : rc ? rc : err_set(err, ERR_IO, "store: a data set vanished");
}

int input_put(struct state *st, struct state_run *r, const struct ingest_dataset *d, struct err *err)
{
	int64_t dataset = 0, there;
	size_t i;
	int rc = put_dataset(st, r->experiment_id, d, &dataset, err);

	if (rc)
		return rc;
	rc = db_int(state_db(st), &there, DB_run_dataset_find, err, "ii", r->id, dataset);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = db_run(state_db(st), DB_run_dataset_add, err, "ii", r->id, dataset);
	for (i = 0; i < d->tag_count && !rc; i++)
		rc = db_run(state_db(st), DB_run_dataset_tag_add, err, "iitt", r->id, dataset, d->tags[i].key,
			    d->tags[i].value);
	return rc;
}

/* move.c: moves rows and files in steps: mark the target as incomplete, copy files (each confirmed by its row, so
 * that a retry keeps it), then copy all rows in one transaction, whose rows are read back before the commit. */
#include "web/store/move/move.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/move/move_inside.h"

struct move_filling {
	struct move_end *to;
	struct dump dump; /* of what was read */
	uint64_t rows;
};

static int copy_moved_row(void *arg, const struct db_row *r, struct err *err)
{
	struct move_filling *f = arg;
	int rc = dump_row(&f->dump, r, err);

	f->rows++;
	return rc ? rc : tables_put(f->to->d, r, err);
}

static int dump_files(struct dump *d, const struct move_files *f, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < f->n && !rc; i++)
		rc = dump_file(d, f->list[i].path, f->list[i].bytes, f->list[i].sha256, err);
	return rc;
}

/* Reads the target's rows in the transaction that wrote them, and its files by their rows. */
static int digest_target(struct move_end *to, char ret[65], struct err *err)
{
	struct db_rows *q;
	struct dump d;
	int rc;

	dump_init(&d);
	rc = tables_walk(to->d, dump_row, &d, err);
	if (!rc)
		rc = db_start(to->d, &q, DB_artifact_all, err, "");
	while (!rc && (rc = db_next(to->d, q, err)) > 0)
		rc = dump_file(&d, db_str(q, COL_artifact_all_path), (uint64_t)db_i64(q, COL_artifact_all_bytes),
			       db_str(q, COL_artifact_all_sha256), err);
	if (!rc)
		rc = dump_end(&d, ret, err);
	dump_done(&d);
	return rc;
}

/* Inside the target's transaction. */
static int fill_move_target(struct move_filling *f, struct move_end *from, const struct move_files *files,
			    char ret_sha256[65], struct err *err)
{
	char arrived[65];
	int rc = move_walk(from, copy_moved_row, f, err);

	if (!rc)
		rc = tables_put_end(f->to->d, err);
	if (!rc)
		rc = dump_files(&f->dump, files, err);
	if (!rc)
		rc = dump_end(&f->dump, ret_sha256, err);
	if (!rc)
		rc = digest_target(f->to, arrived, err);
	if (!rc && strcmp(arrived, ret_sha256))
		rc = err_set(err, ERR_CORRUPT, "%s: the copy differs from the source: empty it and start again",
			     f->to->shown);
	if (!rc)
		rc = db_run(f->to->d, DB_meta_forget, err, "t", "moving");
	return rc ? rc : db_run(f->to->d, DB_store_id_put, err, "t", from->id);
}

static int move_rows(struct move_end *from, struct move_end *to, const struct move_files *files,
		     struct move_result *ret, struct err *err)
{
	struct move_filling f = { .to = to };
	int rc = db_run(to->d, DB_begin_long, err, "");

	dump_init(&f.dump);
	if (!rc)
		rc = fill_move_target(&f, from, files, ret->sha256, err);
	if (!rc)
		rc = db_run(to->d, DB_commit, err, "");
	if (rc && db_in_transaction(to->d))
		db_run(to->d, DB_rollback, NULL, "");
	dump_done(&f.dump);
	ret->rows = f.rows;
	if (!rc) {
		db_run(to->d, DB_statistics, NULL, "");
		db_checkpoint(to->d, true);
	}
	return rc;
}

int move_store(const struct move_place *from, const struct move_place *to, struct move_result *ret, struct err *err)
{
	struct move_result res = { .rows = 0 };
	struct move_end a = { .begun = false }, b = { .begun = false };
	struct move_files files = { .n = 0 };
	double began_s = clock_mono_s();
	int rc = move_open_from(&a, from, err);

	if (!rc)
		rc = move_open_to(&b, to, &a, err);
	if (!rc)
		rc = move_files_list(&files, &a, err);
	if (!rc)
		rc = move_files_copy(&files, &a, &b, &res, err);
	if (!rc)
		rc = move_rows(&a, &b, &files, &res, err);
	move_files_done(&files);
	move_close(&b);
	move_close(&a);
	if (rc)
		return rc;
	res.seconds = clock_mono_s() - began_s;
	*ret = res;
	return 0;
}

int move_dump(const struct move_place *place, int (*sink)(void *arg, const char *text, size_t n, struct err *err),
	      void *arg, char ret_sha256[65], struct err *err)
{
	struct move_end e = { .begun = false };
	struct move_files files = { .n = 0 };
	struct dump d;
	int rc = move_open_from(&e, place, err);

	dump_init(&d);
	d.sink = sink;
	d.arg = arg;
	if (!rc)
		rc = move_files_list(&files, &e, err);
	if (!rc)
		rc = move_files_read(&files, &e, err);
	if (!rc)
		rc = move_walk(&e, dump_row, &d, err);
	if (!rc)
		rc = dump_files(&d, &files, err);
	if (!rc)
		rc = dump_end(&d, ret_sha256, err);
	dump_done(&d);
	move_files_done(&files);
	move_close(&e);
	return rc;
}

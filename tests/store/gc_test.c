/* SPDX-License-Identifier: Apache-2.0 */
/* gc_test.c: permanent removal: no table has a row of the run, its files are deleted as requested and no others, its
 * journal is refused from then on, ids are not reused, the next gc finishes an interrupted removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/helper.h"
#include "web/store/files/artifacts.h"
#include "web/store/follow/follow.h"
#include "web/store/mlflow/mlflow.h"
#include "web/store/maintenance/maintenance.h"

#define OTHER "fedcba9876543210fedcba9876543210"

static struct ingest_result submit(struct helper *h, struct ingest_op op)
{
	struct ingest_result res = { 0 };

	ingest_submit(h->s, &op, NULL, &res, NULL);
	return res;
}

static void put_file(const char *folder, const char *name, const void *bytes, size_t n)
{
	char path[PATH_MAX * 2], *slash;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	for (slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static bool is_there(const char *folder, const char *name)
{
	char path[PATH_MAX * 2];
	struct stat sb;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return !lstat(path, &sb);
}

static void open_with_folders(struct helper *h)
{
	static char artifacts[PATH_MAX];

	snprintf(artifacts, sizeof artifacts, "%s/dptrack.artifacts", h->folder);
	helper_reopen_with(h, &(struct store_opts){ .logdir = h->folder, .artifacts = artifacts });
}

static void follow_once(struct helper *h)
{
	struct follow *f;
	struct err err = ERR_INIT;

	if (follow_start(&f, h->s, &(struct follow_opts){ .logdir = h->folder, .once = true }, &err) ||
	    follow_scan_wait(f, -1, &err))
		fail_msg("%s", err.text);
	follow_stop(f);
}

static struct store_gc_result gc(struct helper *h, struct store_gc_opts o)
{
	struct store_gc_result res;
	struct err err = ERR_INIT;

	if (store_gc(h->s, &o, &res, &err))
		fail_msg("%s", err.text);
	return res;
}

/* Makes a run with a row in every table, by REST and by journals of two ranks. */
static void fill(struct helper *h)
{
	static const struct ingest_kv pair = { "k", "v" };
	struct event_header header = helper_header(0, 0, 0);
	struct ingest_point points[4000];
	struct buf journal;
	int i;

	buf_init(&journal, 1 << 20);
	encode_header(&journal, 1.7e9, &header);
	for (i = 0; i < 100; i++)
		helper_scalar(&journal, "train/loss", i, i);
	put_file(h->folder, "exp/first-01234567/events.out.tfevents.1.h.1.0", journal.data, journal.len);
	put_file(h->folder, "exp/first-01234567/checkpoints/step-1/w", "x", 1);
	put_file(h->folder, "exp/first-01234567/foreign.tfevents", "not ours", 8);
	put_file(h->folder, "dptrack.artifacts/1/" HELPER_RUN "/artifacts/a/b", "12345", 5);
	put_file(h->folder, "dptrack.artifacts/1/" OTHER "/artifacts/c", "1", 1);
	put_file(h->folder, "outside", "1", 1);
	{
		char link[PATH_MAX], to[PATH_MAX];

		snprintf(link, sizeof link, "%s/dptrack.artifacts/1/" HELPER_RUN "/artifacts/link", h->folder);
		snprintf(to, sizeof to, "%s/outside", h->folder);
		assert_int_equal(symlink(to, link), 0);
	}
	follow_once(h);
	buf_done(&journal);
	for (i = 0; i < 4000; i++)
		points[i] = (struct ingest_point){ i & 1 ? "a" : "b", i, i, i, i % 3 - 1 };
	for (i = 0; i < 20; i++)
		assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_points, .run = HELPER_RUN,
							       .logged.points = points,
							       .logged.point_count = 4000,
							       .idempotency = i ? NULL : "once" }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_params, .run = HELPER_RUN,
						       .logged.params = &pair,
						       .logged.param_count = 1 }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_tags, .run = HELPER_RUN,
						       .logged.tags = &pair,
						       .logged.tag_count = 1 }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_patch, .run = HELPER_RUN, .state.notes = "n",
						       .state.end_ms = INGEST_NO_TIME }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_new, .run = OTHER, .experiment = "exp",
						       .name = "other",
						       .logged.params = &pair, .logged.param_count = 1 }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_points, .run = OTHER, .logged.points = points,
						       .logged.point_count = 4000 }).code, 0);
	store_fold(h->s, 10);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_points, .run = HELPER_RUN,
						       .logged.points = points,
						       .logged.point_count = 10 }).code, 0);
}

static const char *const tables_of_runs[] = {
	"alert",       "alert_fired", "archive",     "arrival",	      "code",	     "console",
	"environment", "file",	      "idempotency", "log",	      "media",	     "metric",
	"note",	       "note_text",   "param",	      "part",	     "problem",	      "run_dataset", "run_dataset_tag",
	"run_model",   "run_text",    "segment",     "segment_param", "series",	     "tag",
	"told",	       "writer"
};

/* Checks all tables of the schema: no row refers to the run, and every chunk has its series. */
static void check_rows(struct helper *h, int64_t run_id, bool want)
{
	enum { TABLES = sizeof tables_of_runs / sizeof tables_of_runs[0] };
	int64_t rows = 0;
	char sql[300];
	size_t i;

	if (!helper_in_database())
		assert_int_equal(helper_number(h, "SELECT count(*) FROM sqlite_master m "
						  "JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND "
						  "c.name = 'run_id' AND m.name <> 'gone'"), TABLES);
	for (i = 0; i < TABLES; i++) {
		int64_t n;

		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE run_id = %lld", tables_of_runs[i],
			 (long long)run_id);
		n = helper_number(h, sql);
		rows += n;
		if (!want && n)
			fail_msg("%s still has rows of the run", tables_of_runs[i]);
	}
	assert_int_equal(rows > 0, want);
	assert_int_equal(helper_number(h, "SELECT count(*) FROM chunk WHERE id >> 20 NOT IN (SELECT id FROM series)"),
			 0);
	assert_int_equal(helper_number(h, "SELECT count(*) FROM run WHERE uuid = '" HELPER_RUN "'"), want);
}

static int64_t id_of(struct helper *h)
{
	return helper_number(h, "SELECT id FROM run WHERE uuid = '" HELPER_RUN "'");
}

static void check_gone(struct helper *h)
{
	struct err err = ERR_INIT;
	struct query_run r;
	uint64_t durable;

	assert_int_equal(query_run(h->s, HELPER_RUN, h->a, &r, &err), ERR_GONE);
	assert_int_equal(ingest_durable(h->s, HELPER_RUN, HELPER_WRITER, &durable, &err), ERR_GONE);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_restore, .run = HELPER_RUN }).code,
			 ERR_GONE);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_new, .run = HELPER_RUN, .name = "x" }).code,
			 ERR_GONE);
}

static void removed_for_good(void **state)
{
	struct helper *h = *state;
	struct ingest_result res;
	struct store_gc_result sum;
	struct event_header header = helper_header(0, 0, 0);
	struct buf journal;
	int64_t id;

	open_with_folders(h);
	fill(h);
	id = id_of(h);
	assert_int_equal(gc(h, (struct store_gc_opts){ .journals = true }).runs, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_delete, .run = HELPER_RUN }).code, 0);
	assert_int_equal(gc(h, (struct store_gc_opts){ .older_than_ms = 3600000 }).runs, 0);
	sum = gc(h, (struct store_gc_opts){ .journals = true, .dry_run = true });
	assert_int_equal(sum.runs, 1);
	assert_int_equal(sum.points, 100 + 80000 + 10);
	assert_int_equal(sum.artifacts, 2);
	assert_int_equal(sum.journals, 1);
	check_rows(h, id, true);
	assert_false(memcmp(&(struct store_gc_result){ 0 }, &sum, sizeof sum) == 0);
	sum = gc(h, (struct store_gc_opts){ 0 });
	assert_int_equal(sum.runs, 1);
	assert_true(sum.freed_bytes > 0 || helper_in_database());
	assert_true(is_there(h->folder, "exp/first-01234567/events.out.tfevents.1.h.1.0"));
	assert_false(is_there(h->folder, "dptrack.artifacts/1/" HELPER_RUN));
	assert_true(is_there(h->folder, "dptrack.artifacts/1/" OTHER "/artifacts/c"));
	assert_true(is_there(h->folder, "outside"));
	check_rows(h, id, false);
	check_gone(h);
	/* The folder is scanned again, the journal is sent again: the run stays removed. */
	follow_once(h);
	open_with_folders(h);
	follow_once(h);
	check_gone(h);
	buf_init(&journal, 1 << 16);
	encode_header(&journal, 1.7e9, &header);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &journal, 0, &res), ERR_GONE);
	buf_done(&journal);
	assert_int_equal(helper_metric(&(struct query_run[]){ helper_run(h, OTHER) }[0], "a")->count, 667);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_new, .name = "next" }).code, 0);
	check_rows(h, id, false);
}

static void journals_deleted_on_request(void **state)
{
	struct helper *h = *state;
	struct store_gc_result sum;

	open_with_folders(h);
	fill(h);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_delete, .run = HELPER_RUN }).code, 0);
	sum = gc(h, (struct store_gc_opts){ .journals = true });
	assert_int_equal(sum.journals, 1);
	assert_false(is_there(h->folder, "exp/first-01234567/events.out.tfevents.1.h.1.0"));
	assert_true(is_there(h->folder, "exp/first-01234567/checkpoints/step-1/w"));
	assert_true(is_there(h->folder, "exp/first-01234567/foreign.tfevents"));
}

/* The changes that page and scripts follow report a removal, also after a restart. */
static void changes_report_removals(void **state)
{
	struct helper *h = *state;
	struct query_changes before, after;
	struct err err = ERR_INIT;

	open_with_folders(h);
	fill(h);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_delete, .run = HELPER_RUN }).code, 0);
	assert_int_equal(query_changes(h->s, NULL, h->a, &before, &err), 0);
	gc(h, (struct store_gc_opts){ 0 });
	open_with_folders(h);
	assert_int_equal(query_changes(h->s, before.token, h->a, &after, &err), 0);
	assert_false(after.reset);
	assert_int_equal(after.run_count, 1);
	assert_string_equal(after.runs[0], HELPER_RUN);
}

/* Simulates a process that died after the first step. */
static void interrupted(void **state)
{
	struct helper *h = *state;
	int64_t id;

	open_with_folders(h);
	fill(h);
	id = id_of(h);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_delete, .run = HELPER_RUN }).code, 0);
	assert_true(submit(h,
			   (struct ingest_op){ .kind = &change_purge_run, .run = HELPER_RUN,
					       .before_ms = INT64_MAX }).more);
	open_with_folders(h);
	check_gone(h);
	store_fold(h->s, 10);
	assert_int_equal(gc(h, (struct store_gc_opts){ 0 }).runs, 1);
	check_rows(h, id, false);
	assert_false(is_there(h->folder, "dptrack.artifacts/1/" HELPER_RUN));
	assert_int_equal(gc(h, (struct store_gc_opts){ 0 }).runs, 0);
}

static void wake(void *arg, const struct ingest_result *res)
{
	*(struct ingest_result *)arg = *res;
}

static struct ingest_result track(struct helper *h, struct mlflow_op op)
{
	struct ingest_result res = { 0 };
	struct err err = ERR_INIT;
	struct ingest_op change;

	op.end_ms = INGEST_NO_TIME;
	change = mlflow_op(&op);
	assert_int_equal(ingest_submit(h->s, &change, &(struct ingest_done){ wake, &res }, NULL, &err), 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_sync }).code, 0);
	assert_int_equal(res.code, 0);
	return res;
}

/* Makes an experiment with a deleted model and a live one, with rows in all tables, and files. */
static int64_t fill_models(struct helper *h)
{
	static const char *const ids[] = { "m-0000000000000000000000000000000a", "m-0000000000000000000000000000000b" };
	static const struct ingest_kv pair = { "k", "v" };
	int64_t id = strtol(track(h, (struct mlflow_op){ .kind = &mlflow_experiment_new, .name = "modelled",
							 .tags = &pair,
							  .tag_count = 1 }).id, NULL, 10);
	char path[100];
	int i;

	for (i = 0; i < 2; i++) {
		track(h, (struct mlflow_op){ .kind = &mlflow_model_new, .model = ids[i], .experiment = id, .name = "m",
					     .type = "",
					       .source_run = "", .params = &pair, .param_count = 1, .tags = &pair,
					       .tag_count = 1 });
		snprintf(path, sizeof path, "%lld/models/%s/artifacts/w", (long long)id, ids[i]);
		assert_int_equal(submit(h, (struct ingest_op){ .kind = &artifact_change_put,
			.more = &(struct artifact_digest){ .path = path, .bytes = 5, .sha256 = "x" } }).code, 0);
		snprintf(path, sizeof path, "dptrack.artifacts/%lld/models/%s/artifacts/w", (long long)id, ids[i]);
		put_file(h->folder, path, "12345", 5);
	}
	track(h, (struct mlflow_op){ .kind = &mlflow_model_delete, .model = ids[0] });
	return id;
}

static void models_and_experiments(void **state)
{
	struct helper *h = *state;
	struct store_gc_result sum;
	int64_t id;
	char path[100];

	open_with_folders(h);
	id = fill_models(h);
	snprintf(path, sizeof path, "dptrack.artifacts/%lld/models", (long long)id);
	assert_int_equal(gc(h, (struct store_gc_opts){ .older_than_ms = 3600000 }).models, 0);
	assert_int_equal(gc(h, (struct store_gc_opts){ .dry_run = true }).models, 1);
	sum = gc(h, (struct store_gc_opts){ 0 });
	assert_int_equal(sum.models, 1);
	assert_int_equal(sum.artifacts, 1);
	assert_int_equal(sum.experiments, 0);
	assert_int_equal(helper_number(h,
			       "SELECT (SELECT count(*) FROM model) + (SELECT count(*) FROM model_param) + (SELECT "
			       "count(*) FROM "
				  "model_tag) + (SELECT count(*) FROM artifact)"), 4);
	track(h, (struct mlflow_op){ .kind = &mlflow_experiment_delete, .experiment = id });
	assert_int_equal(gc(h, (struct store_gc_opts){ .older_than_ms = 3600000 }).experiments, 0);
	assert_true(is_there(h->folder, path));
	sum = gc(h, (struct store_gc_opts){ 0 });
	assert_int_equal(sum.models, 1);
	assert_int_equal(sum.experiments, 1);
	assert_false(is_there(h->folder, path));
	assert_int_equal(helper_number(h,
			       "SELECT (SELECT count(*) FROM model) + (SELECT count(*) FROM model_param) + (SELECT "
			       "count(*) FROM "
				  "model_tag) + (SELECT count(*) FROM artifact) + (SELECT count(*) FROM "
				  "experiment_tag)"), 0);
	assert_int_equal(helper_number(h, "SELECT count(*) FROM experiment"), 1);
	assert_int_equal(gc(h, (struct store_gc_opts){ 0 }).experiments, 0);
}

static void restored_run_is_kept(void **state)
{
	struct helper *h = *state;

	open_with_folders(h);
	fill(h);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_delete, .run = HELPER_RUN }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_restore, .run = HELPER_RUN }).code, 0);
	assert_int_equal(submit(h,
				(struct ingest_op){ .kind = &change_purge_run, .run = HELPER_RUN,
						    .before_ms = INT64_MAX }).code,
			 ERR_EXISTS);
	assert_int_equal(gc(h, (struct store_gc_opts){ .journals = true }).runs, 0);
	assert_int_equal(helper_metric(&(struct query_run[]){ helper_run(h, HELPER_RUN) }[0], "train/loss")->count,
			 100);
}

/* A process died after the deletion was stored: the next gc removes the file, unless it was uploaded again. */
static void deleted_files_leave(void **state)
{
	static const char path[] = "1/" HELPER_RUN "/artifacts/a";
	struct artifact_files files = { 0 };
	struct helper *h = *state;
	struct err err = ERR_INIT;
	struct ingest_op op = { .kind = &artifact_change_delete, .name = path, .more = &files };

	open_with_folders(h);
	fill(h);
	put_file(h->folder, "dptrack.artifacts/1/" HELPER_RUN "/artifacts/a/c/d", "old", 3);
	assert_int_equal(artifact_files(h->s, path, h->a, &files, &err), 0);
	assert_int_equal(files.count, 2);
	assert_int_equal(submit(h, op).code, 0);
	assert_int_equal(helper_number(h, "SELECT count(*) FROM leaving"), 2);
	put_file(h->folder, "dptrack.artifacts/1/" HELPER_RUN "/artifacts/a/b", "another", 7);
	open_with_folders(h);
	gc(h, (struct store_gc_opts){ .dry_run = true });
	assert_true(is_there(h->folder, "dptrack.artifacts/1/" HELPER_RUN "/artifacts/a/c/d"));
	gc(h, (struct store_gc_opts){ 0 });
	assert_false(is_there(h->folder, "dptrack.artifacts/1/" HELPER_RUN "/artifacts/a/c"));
	assert_true(is_there(h->folder, "dptrack.artifacts/1/" HELPER_RUN "/artifacts/a/b"));
	assert_int_equal(helper_number(h, "SELECT count(*) FROM leaving"), 0);
}

/* An upload that ends when its run was removed leaves no file and no row. */
static void upload_ends_after_its_run(void **state)
{
	static const char path[] = "1/" HELPER_RUN "/artifacts/late";
	const struct artifact_digest row = { .path = path, .sha256 = "", .object = "0123456789abcdef0123456789abcdef" };
	struct artifact_upload *u;
	struct artifact_file file;
	struct helper *h = *state;
	struct err err = ERR_INIT;

	open_with_folders(h);
	fill(h);
	assert_int_equal(artifact_begin(&u, store_artifacts(h->s), path, NULL, &err), 0);
	assert_int_equal(artifact_write(u, "12345", 5, &err), 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_delete, .run = HELPER_RUN }).code, 0);
	gc(h, (struct store_gc_opts){ 0 });
	assert_int_equal(artifact_commit(u, &file, &err), ERR_GONE);
	artifact_end(u);
	assert_false(is_there(h->folder, "dptrack.artifacts/1/" HELPER_RUN));
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &object_change_begin, .name = row.object }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &artifact_change_put, .more = &row }).code, ERR_GONE);
	assert_int_equal(helper_number(h, "SELECT count(*) FROM object"), 1); /* for the next sweep */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(removed_for_good, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(deleted_files_leave, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(upload_ends_after_its_run, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(journals_deleted_on_request, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(changes_report_removals, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(interrupted, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(models_and_experiments, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(restored_run_is_kept, helper_setup, helper_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: the checks, one function each. */
#include "web/store/maintenance/maintenance.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "tracker/event/record.h"
#include "web/store/base/background_job.h"
#include "web/store/base/parts.h"
#include "web/store/files/artifacts.h"
#include "web/store/follow/folder_tree.h"
#include "web/store/points/scan.h"
#include "web/store/store.h"

#define SAMPLED_SERIES 200
#define PROBED_FILES 20000
#define PROBE_BYTES 4096
#define NAMED_FILES 3
#define SAMPLED_CHUNKS 200 /* chunks checked per series */
#define LOG_POINTS_MANY 5000000u
#define CHUNKS_BYTES_MAX (INT64_C(2) << 30) /* in larger files a sample of points replaces the check of the chunk
					     * table */

struct check {
	struct store *s;
	const char *path;
	bool full;
	struct arena *a;
	struct check_report *r;
	struct err *err;
};

/* State of checking one series. */
struct series_check {
	int64_t id, chunks, bad_chunk;
	struct sum sum;
	struct sum_point room[CHUNK_POINTS];
};

const char *check_level_name(enum check_level level)
{
	static const char *const names[] = { "ok", "note", "warning", "error" };

	return names[level];
}

/* Appends a finding to the report. Returns 0, so that a check can return it. */
__attribute__((format(printf, 4, 5))) static int add_finding(struct check *c, enum check_level level, const char *name,
							     const char *fmt, ...)
{
	struct check_report *r = c->r;
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	list_push(c->a, &r->items, &r->count, (struct check_finding){ level, name, arena_strdup(c->a, text) });
	r->worst = level > r->worst ? level : r->worst;
	return 0;
}

static int check_sqlite(struct check *c)
{
	enum db_flaw flaw;
	const char *version = db_engine(&flaw);

	if (flaw == DB_NO_THREADS)
		return add_finding(c, CHECK_ERROR, "sqlite",
				   "SQLite %s was built without threads: install the distribution's library", version);
	if (flaw == DB_FLAWLESS)
		return add_finding(c, CHECK_OK, "sqlite", "SQLite %s", version);
	return add_finding(c, CHECK_NOTE, "sqlite",
			   "SQLite %s: dptrack writes through one connection, as this version needs: let no other "
			   "program write to the file while it is served",
			   version);
}

static int check_mode(struct check *c, const char *path)
{
	struct stat sb;

	if (stat(path, &sb))
		return 0;
	if (sb.st_mode & 077)
		return add_finding(c, CHECK_WARNING, "place", "%s can be read by others (mode %03o): chmod 600", path,
				   (unsigned)(sb.st_mode & 0777));
	if (sb.st_uid != geteuid())
		return add_finding(c, CHECK_WARNING, "place", "%s belongs to user %u, not to you (%u)", path,
				   (unsigned)sb.st_uid, (unsigned)geteuid());
	return 0;
}

/* Checks permissions, and free space next to the file. */
static int check_free_space(struct check *c)
{
	char wal[PATH_MAX + 16], folder[PATH_MAX];
	struct statvfs fs;
	struct stat sb;
	double free_bytes, wants;
	int rc = check_mode(c, c->path);

	snprintf(wal, sizeof(wal), "%s-wal", c->path);
	if (!rc)
		rc = check_mode(c, wal);
	snprintf(folder, sizeof(folder), "%s", c->path);
	if (strrchr(folder, '/'))
		strrchr(folder, '/')[1] = '\0';
	else
		snprintf(folder, sizeof(folder), ".");
	if (rc || statvfs(folder, &fs) || stat(c->path, &sb))
		return rc;
	free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
	wants = 64e6 + 0.05 * (double)sb.st_size;
	if (access(folder, W_OK))
		return add_finding(c, CHECK_ERROR, "place", "%s cannot be written", folder);
	if (free_bytes < wants)
		return add_finding(c, free_bytes < 16e6 ? CHECK_ERROR : CHECK_WARNING, "place",
				   "%.0f MB are free for the store (%.0f MB): free disk space, or run dptrack gc",
				   free_bytes * 1e-6, (double)sb.st_size * 1e-6);
	return add_finding(c, CHECK_OK, "place", "%s: %.1f MB, %.0f MB are free", c->path, (double)sb.st_size * 1e-6,
			   free_bytes * 1e-6);
}

static int check_writes(struct check *c)
{
	struct store_stats st;

	store_stats(c->s, &st);
	if (st.write_error)
		return add_finding(c, CHECK_ERROR, "writes", "the last commit failed: %s", st.write_error_text);
	if (st.log_points > LOG_POINTS_MANY)
		return add_finding(c, CHECK_WARNING, "log",
				   "%llu points wait to be folded: more arrive than this machine keeps up with",
				   (unsigned long long)st.log_points);
	return add_finding(c, CHECK_OK, "log", "%llu points in %llu batches wait to be folded",
			   (unsigned long long)st.log_points, (unsigned long long)st.log_rows);
}

static int check_table(struct check *c, struct db *d, const char *table, bool *ret_good)
{
	struct db_rows *q;
	int rc = db_start(d, &q, c->full ? DB_check_table_whole : DB_check_table, c->err, "t", table);

	while (!rc && (rc = db_next(d, q, c->err)) > 0) {
		const char *text = db_str(q, COL_check_table_text);

		rc = 0;
		if (!text || !strcmp(text, "ok"))
			continue;
		*ret_good = false;
		rc = add_finding(c, CHECK_ERROR, "structure",
				 "table %s: %.200s: restore a backup (dptrack backup --restore)", table, text);
		db_stop(q);
		break;
	}
	return rc;
}

/* The next name after `after`; *ret NULL at the end. */
static int next_table(struct check *c, struct db *d, const char *after, const char **ret)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_check_tables, c->err, "t", after);

	*ret = NULL;
	if (!rc && (rc = db_next(d, q, c->err)) > 0) {
		*ret = db_text(c->a, q, COL_check_tables_name);
		db_stop(q);
		rc = 0;
	}
	return rc;
}

/* Frees the page cache: what a check reads is not needed again soon. */
static void release_check_reader(struct check *c, struct db *d)
{
	if (d)
		db_rest(d);
	readers_give(c->s, d);
}

static int check_is_canceled(struct check *c)
{
	return background_job_canceled(c->s->work) ? err_set(c->err, ERR_CANCELED, "the store is closing") : 0;
}

/* Reading a whole large file takes minutes and slows down others. */
static bool is_too_large(const char *path)
{
	struct stat sb;

	return !stat(path, &sb) && sb.st_size > CHUNKS_BYTES_MAX;
}

/* Each table in its own snapshot: a long one would keep the log file from shrinking. */
static int check_structure(struct check *c)
{
	const char *table = "";
	bool good = true, skip;
	int tables = -1, rc = 0;

	while (!rc && table) {
		struct db *d = NULL;

		rc = readers_take(c->s, &d, c->err);
		if (!rc)
			rc = next_table(c, d, table, &table);
		skip = !rc && table && !c->full && !strcmp(table, "chunk") && is_too_large(c->path);
		if (!rc && table && !skip)
			rc = check_table(c, d, table, &good);
		release_check_reader(c, d);
		tables++;
		if (!rc)
			rc = check_is_canceled(c);
	}
	if (rc == ERR_DAMAGED)
		return add_finding(c, CHECK_ERROR, "structure", "%.300s: restore a backup (dptrack backup --restore)",
				   c->err->text);
	return rc || !good ? rc : add_finding(c, CHECK_OK, "structure", "%d tables are intact", tables);
}

static int sum_chunk(void *arg, const struct chunk *k, struct err *err)
{
	struct series_check *sc = arg;
	unsigned i;

	if (chunk_points(k, sc->room))
		return err_set(err, ERR_DAMAGED, "a chunk fails its checksum");
	for (i = 0; i < k->points; i++)
		sum_add(&sc->sum, &sc->room[i]);
	sc->chunks++;
	return 0;
}

static bool is_same_double(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool is_same_sum(const struct sum *a, const struct sum *b)
{
	if (a->count != b->count || a->nonfinite != b->nonfinite)
		return false;
	return !a->count ||
	       (is_same_double(a->min, b->min) && is_same_double(a->max, b->max) &&
		is_same_double(a->first.value, b->first.value) && is_same_double(a->last.value, b->last.value) &&
		a->first.step == b->first.step && a->last.step == b->last.step);
}

/* Compares every point of a series with its summary: 1 consistent, 0 not. */
static int check_series(struct check *c, struct db *d, int64_t id, struct series_check *sc)
{
	struct err why = ERR_INIT;
	struct sum stored = { 0 };
	struct db_rows *q;
	int64_t chunks = 0, archived;
	int rc = db_start(d, &q, DB_series_get, c->err, "i", id);

	if (rc || (rc = db_next(d, q, c->err)) <= 0)
		return rc;
	chunks = db_i64(q, COL_series_get_chunks);
	sum_row_read(q, COL_series_get_count, &stored);
	db_stop(q);
	sum_init(&sc->sum);
	sc->chunks = 0;
	if (!c->full && chunks > SAMPLED_CHUNKS)
		return 1;
	if (!c->full && (rc = db_int(d, &archived, DB_archive_has_series, c->err, "i", id)))
		return rc;
	rc = scan_series_chunks(d, id, sum_chunk, sc, &why);
	if (rc == ERR_DAMAGED)
		return add_finding(c, CHECK_ERROR, "points", "series %lld: %.200s: restore a backup", (long long)id,
				   why.text);
	if (rc)
		return rc;
	if (sc->chunks != chunks || !is_same_sum(&sc->sum, &stored))
		return add_finding(
			c, CHECK_ERROR, "points",
			"series %lld says %llu points in %lld chunks, %llu in %lld are there, or its summary "
			"differs: restore a backup",
			(long long)id, (unsigned long long)stored.count, (long long)chunks,
			(unsigned long long)sc->sum.count, (long long)sc->chunks);
	return 1;
}

/* Checks series: all, or a sample at a regular stride. */
static int check_points(struct check *c)
{
	struct series_check *sc = arena_alloc(c->a, sizeof(*sc));
	int64_t id = 0, last = 0, seen = 0, good = 0, stride = 1;
	int rc = 0;

	while (rc >= 0) {
		struct db *d;
		int bad = 0;

		rc = readers_take(c->s, &d, c->err);
		if (rc)
			return rc;
		if (!seen && db_int(d, &last, DB_check_last_series, c->err, "") > 0 && !c->full)
			stride = last / SAMPLED_SERIES + 1;
		rc = db_int(d, &id, DB_check_next_series, c->err, "i", id);
		if (rc > 0) {
			bad = check_series(c, d, id, sc);
			id += stride - 1;
		}
		if (rc <= 0 || bad < 0) {
			release_check_reader(c, d);
			break;
		}
		readers_give(c->s, d); /* the next series is on the same pages */
		seen++;
		good += bad;
		if ((rc = check_is_canceled(c)))
			return rc;
	}
	return rc < 0 || good < seen
		       ? rc
		       : add_finding(c, CHECK_OK, "points", "%lld series%s match their points and summaries",
				     (long long)seen, c->full ? "" : " (a sample)");
}

/* Looks for rows that belong to no run. */
static int check_rows(struct check *c)
{
	struct db *d;
	struct db_rows *q;
	int64_t left = 0;
	bool good = true;
	int rc = readers_take(c->s, &d, c->err);

	if (rc)
		return rc;
	rc = db_start(d, &q, c->full ? DB_check_orphans_whole : DB_check_orphans, c->err, "");
	while (!rc && (rc = db_next(d, q, c->err)) > 0) {
		rc = 0;
		if (!db_i64(q, COL_check_orphans_rows))
			continue;
		good = false;
		rc = add_finding(c, CHECK_WARNING, "rows", "table %s: %lld rows belong to nothing",
				 db_str(q, COL_check_orphans_name), (long long)db_i64(q, COL_check_orphans_rows));
	}
	if (!rc && db_int(d, &left, DB_check_unfinished, c->err, "") > 0 && left)
		rc = add_finding(c, CHECK_NOTE, "rows", "%lld runs are partly removed: run dptrack gc",
				 (long long)left);
	release_check_reader(c, d);
	return rc || !good ? rc : add_finding(c, CHECK_OK, "rows", "all rows belong to a run");
}

/* Names stored files whose bytes are not in the folder of files. */
static int check_artifacts(struct check *c)
{
	const char *folder = c->full && store_artifacts(c->s) ? artifacts_folder(store_artifacts(c->s)) : NULL;
	char path[PATH_MAX], names[400] = "";
	uint64_t seen = 0, missing = 0;
	struct db_rows *q;
	struct stat sb;
	struct db *d;
	int rc = folder ? readers_take(c->s, &d, c->err) : 0;

	if (rc || !folder)
		return rc;
	rc = db_start(d, &q, DB_artifact_all, c->err, "");
	for (; !rc && (rc = db_next(d, q, c->err)) > 0; rc = 0, seen++) {
		const char *name = db_str(q, COL_artifact_all_path);
		const size_t len = strlen(names);

		if (file_join(path, sizeof(path), folder, name) && !stat(path, &sb))
			continue;
		if (missing++ < NAMED_FILES)
			snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "", name);
	}
	release_check_reader(c, d);
	if (rc || !missing)
		return rc ? rc : add_finding(c, CHECK_OK, "artifacts", "%llu are there", (unsigned long long)seen);
	return add_finding(c, CHECK_ERROR, "artifacts", "%llu of %llu files are not in %.100s: %s%s: restore a backup",
			   (unsigned long long)missing, (unsigned long long)seen, folder, names,
			   missing > NAMED_FILES ? ", …" : "");
}

/* The start of each file that looks like a journal. */
struct file_probe {
	const char *root;
	uint64_t seen, bad;
	char names[400]; /* names of the first damaged ones */
	size_t len;
};

/* Returns why the file has no records; NULL: it may have some. */
static const char *judge_event_file(const char *path)
{
	unsigned char head[PROBE_BYTES];
	struct record rec;
	size_t at = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum record_state state;

	if (fd < 0)
		return errno == ENOENT ? NULL : strerror(errno);
	n = read(fd, head, sizeof(head));
	close(fd);
	if (n < 0)
		return strerror(errno);
	state = record_next(head, (size_t)n, &at, &rec);
	if (n >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return "compressed with gzip";
	return state == RECORD_BAD_LENGTH ? "no event file" : state == RECORD_BAD_PAYLOAD ? "damaged" : NULL;
}

static void probe_event_file(void *arg, const struct tree_file *f)
{
	struct file_probe *p = arg;
	char path[PATH_MAX];
	const char *why;
	int n;

	if (p->seen++ >= PROBED_FILES || !file_join(path, sizeof(path), p->root, f->path))
		return;
	why = judge_event_file(path);
	if (!why)
		return;
	n = p->bad++ < NAMED_FILES ? snprintf(p->names + p->len, sizeof(p->names) - p->len, "%s%s (%s)",
					      p->len ? ", " : "", f->path, why)
				   : 0;
	if (n > 0 && (size_t)n < sizeof(p->names) - p->len)
		p->len += (size_t)n;
	else
		p->names[p->len] = '\0';
}

/* Names files below the followed folder that look like journals and have no records. */
static int check_event_files(struct check *c)
{
	struct file_probe p = { .root = c->s->logdir };
	struct tree *t;
	int rc;

	if (!*p.root)
		return 0;
	t = tree_open(&(struct tree_opts){ p.root, false, probe_event_file, &p });
	rc = tree_scan(t, NULL);
	tree_close(t);
	if (rc || !p.bad)
		return 0;
	return add_finding(c, CHECK_NOTE, "files", "left out %llu file%s below %s: %s%s", (unsigned long long)p.bad,
			   p.bad == 1 ? "" : "s", p.root, p.names, p.bad > NAMED_FILES ? ", …" : "");
}

int check_store(struct store *s, bool full, struct arena *a, struct check_report *ret, struct err *err)
{
	static int (*const checks[])(struct check * c) = { check_sqlite,     check_free_space, check_writes,
							   check_structure,  check_rows,       check_points,
							   check_artifacts,  check_event_files };
	struct err local = ERR_INIT;
	struct check c = { .s = s, .path = s->path, .full = full, .a = a, .r = ret, .err = err ? err : &local };
	size_t i;
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]) && !rc; i++)
		rc = checks[i](&c);
	if (rc == ERR_DAMAGED)
		rc = add_finding(&c, CHECK_ERROR, "structure", "%.300s", c.err->text);
	ret->time_ms = clock_wall_ms();
	return rc;
}

int check_file(const char *db_path, struct arena *a, struct check_report *ret, struct err *err)
{
	struct check c = { .path = db_path, .a = a, .r = ret, .err = err };
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = check_sqlite(&c);
	if (!rc)
		rc = check_free_space(&c);
	ret->time_ms = clock_wall_ms();
	return rc;
}

/* --- in the background ------------------------------------------------------------------------------------- */

static void run_check(void *arg)
{
	struct store *s = arg;
	struct last_check *l = s->last_check;
	struct arena *a = arena_new(), *old;
	struct err err = ERR_INIT;
	struct check_report *r = arena_alloc(a, sizeof(*r));

	if (check_store(s, false, a, r, &err)) {
		arena_free(a);
		return;
	}
	pthread_mutex_lock(&l->lock);
	old = l->arena;
	l->arena = a;
	l->report = r;
	pthread_mutex_unlock(&l->lock);
	arena_free(old);
}

int check_background(struct store *s, struct err *err)
{
	return background_job_start(s->background, run_check, NULL, s, err);
}

struct check_report check_last(struct store *s, struct arena *a)
{
	struct last_check *l = s->last_check;
	struct check_report r = { 0 };
	size_t i;

	pthread_mutex_lock(&l->lock);
	if (l->report)
		r = *l->report;
	r.items = arena_array(a, r.count, sizeof(*r.items));
	for (i = 0; i < r.count; i++) {
		r.items[i] = l->report->items[i];
		r.items[i].text = arena_strdup(a, r.items[i].text);
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

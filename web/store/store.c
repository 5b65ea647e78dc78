/* SPDX-License-Identifier: Apache-2.0 */
/* store.c: opens and closes the store, holds its lock. */
#include "web/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/archive/archiver.h"
#include "web/store/auth/token.h"
#include "web/store/base/background_job.h"
#include "web/store/base/parts.h"
#include "web/store/points/outline.h"
#include "web/store/read/columns.h"
#include "web/store/read/keysets.h"
#include "web/store/write/committer.h"

static int lock_path(char ret[PATH_MAX], const char *db_path, struct err *err)
{
	if (snprintf(ret, PATH_MAX, "%s.lock", db_path) >= PATH_MAX - 16)
		return err_set(err, ERR_USAGE, "%.200s…: the path is too long", db_path);
	return 0;
}

static void parse_holder(char *text, struct store_holder *ret)
{
	char *line, *rest = text;

	memset(ret, 0, sizeof(*ret));
	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "pid ", 4))
			ret->pid = (int)strtol(line + 4, NULL, 10);
		else if (!strncmp(line, "address ", 8))
			snprintf(ret->address, sizeof(ret->address), "%s", line + 8);
		else if (!strncmp(line, "token ", 6))
			snprintf(ret->token, sizeof(ret->token), "%s", line + 6);
	}
}

static void read_holder(int fd, struct store_holder *ret)
{
	char text[1024];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	parse_holder(text, ret);
}

static int write_holder(int fd, const char *address, const char *token)
{
	char text[600];
	int n = snprintf(text, sizeof(text), "pid %d\naddress %s\ntoken %s\n", (int)getpid(), address, token);

	if (n < 0 || n >= (int)sizeof(text))
		return ENAMETOOLONG;
	if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) != n)
		return errno ? errno : EIO;
	return 0;
}

/* Files only; addresses are shared. */
static int take_lock(struct store *s, struct err *err)
{
	char path[PATH_MAX];
	struct store_holder h;
	int tries, rc = lock_path(path, s->path, err);

	if (rc)
		return rc;
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return err_set_errno(err, errno, "%s", path);
	/* store_holder takes the lock for an instant to test it; a file without a process is that of one that begins or
	 * ends. */
	for (tries = 0; flock(s->lock_fd, LOCK_EX | LOCK_NB); tries++) {
		if (errno != EWOULDBLOCK)
			return err_set_errno(err, errno, "cannot lock %s", path);
		read_holder(s->lock_fd, &h);
		if (tries >= (h.pid ? 5 : 200))
			return err_set(err, ERR_BUSY, "%s is held by process %d%s%s: stop it, or connect to it",
				       s->path, h.pid, *h.address ? " serving " : "", h.address);
		clock_sleep_s(0.01);
	}
	fchmod(s->lock_fd, 0600);
	/* A full disk must not prevent reading: the lock itself needs no bytes. */
	write_holder(s->lock_fd, "", "");
	return 0;
}

/* Chunks of a file need no cache. */
static uint64_t outline_chunk_bytes(const struct store_opts *o)
{
	uint64_t mib = o->cache_mib > 0 ? (uint64_t)o->cache_mib : STORE_CACHE_MIB;

	return db_is_address(o->db_path) ? mib << 19 : 0;
}

static int init_store_parts(struct store *s, const struct store_opts *o, struct err *err)
{
	const struct archives_source archives = archiver_source(s);

	s->work = background_job_new();
	s->background = background_job_new();
	s->columns = columns_new();
	s->keysets = keysets_new();
	s->permitted = permitted_cache_new();
	s->outlines = outlines_new(outline_chunk_bytes(o));
	s->archives = archives_new(&archives);
	s->last_check = mem_zalloc(sizeof(*s->last_check));
	pthread_mutex_init(&s->last_check->lock, NULL);
	if (snprintf(s->logdir, sizeof(s->logdir), "%s", o->logdir ? o->logdir : "") >= (int)sizeof(s->logdir) ||
	    snprintf(s->artifacts, sizeof(s->artifacts), "%s", o->artifacts ? o->artifacts : "") >=
		    (int)sizeof(s->artifacts))
		return err_set(err, ERR_USAGE, "the path of the runs or artifacts is too long");
	return 0;
}

int store_lock(struct store **ret, const char *db_path, struct err *err)
{
	struct store *s = mem_zalloc(sizeof(*s));
	int rc;

	s->lock_fd = -1;
	snprintf(s->path, sizeof(s->path), "%s", db_path);
	rc = take_lock(s, err);
	if (rc) {
		store_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

static int open_artifacts(struct store *s, const struct store_opts *opts, struct err *err)
{
	const char *slash = strrchr(s->path, '/');
	struct artifacts_opts a = { .by_default = opts->artifacts_by_default || !opts->artifacts,
				    .max_bytes = opts->artifact_max };
	char default_root[PATH_MAX + 32];
	int rc;

	if (db_is_address(opts->db_path) && !opts->artifacts)
		return err_set(err, ERR_USAGE, "no folder for artifacts: set one with --artifacts");
	snprintf(default_root, sizeof(default_root), "%.*sdptrack.artifacts", slash ? (int)(slash - s->path) + 1 : 0,
		 s->path);
	a.root = opts->artifacts ? opts->artifacts : default_root;
	rc = artifacts_new(&s->files, s, &a, err);
	if (!rc)
		snprintf(s->artifacts, sizeof(s->artifacts), "%s",
			 artifacts_folder(s->files) ? artifacts_folder(s->files) : "");
	return rc;
}

bool store_only_reads(const struct store *s)
{
	return !s->writer;
}

struct store *store_restrict(struct store *s, const char *grants, enum grant_level most)
{
	size_t n = strlen(grants) + 1;
	struct restriction *r = mem_zalloc(sizeof(*r) + n);
	struct store *copy = mem_alloc(sizeof(*copy));

	r->users = 1;
	r->whole = s;
	r->most = most;
	memcpy(r->text, grants, n);
	*copy = *s;
	copy->restriction = r;
	return copy;
}

struct store *store_hold(struct store *s)
{
	if (s->restriction)
		atomic_fetch_add(&s->restriction->users, 1);
	return s;
}

void store_release(struct store *s)
{
	struct restriction *r = s->restriction;

	if (!r || atomic_fetch_sub(&r->users, 1) > 1)
		return;
	free(r);
	free(s);
}

static void name_user(char *ret, size_t room)
{
	struct passwd entry, *found = NULL;
	char texts[4096];

	if (getpwuid_r(geteuid(), &entry, texts, sizeof(texts), &found) || !found)
		snprintf(ret, room, "user %u", (unsigned)geteuid());
	else
		snprintf(ret, room, "%s", found->pw_name);
}

static int open_read_only(struct store *s)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_new_alone(&s->readers, s->path, NULL);

	if (!rc)
		rc = readers_take(s, &d, NULL);
	if (rc)
		return rc;
	rc = db_start(d, &q, DB_store_id, NULL, "");
	if (!rc && (rc = db_next(d, q, NULL)) > 0) {
		snprintf(s->id, sizeof(s->id), "%s", db_str(q, COL_store_id_value));
		db_stop(q);
	}
	readers_give(s, d);
	return rc < 0 ? rc : 0;
}

static int read_address_key(struct store *s, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_address_key, err, "");
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		snprintf(s->address_key, sizeof(s->address_key), "%s", db_str(q, COL_address_key_value));
		db_stop(q);
	}
	readers_give(s, d);
	return rc < 0 ? rc : 0;
}

static int open_store_dbs(struct store *s, const struct store_opts *opts, struct err *err)
{
	int rc = committer_start(&s->writer, opts, err);

	if (rc == ERR_NOSPC && opts->read_when_full)
		return open_read_only(s) ? rc : 0;
	if (rc)
		return rc;
	memcpy(s->id, committer_store_id(s->writer), sizeof(s->id));
	rc = readers_new(&s->readers, opts->db_path, opts->max_readers, err);
	return rc ? rc : read_address_key(s, err);
}

int store_open(struct store **ret, const struct store_opts *opts, struct err *err)
{
	struct store *s = mem_zalloc(sizeof(*s));
	int rc;

	s->lock_fd = -1;
	name_user(s->user, sizeof(s->user)); /* now: later threads may not read /etc */
	db_shown(s->path, sizeof(s->path), opts->db_path);
	if (strlen(opts->db_path) >= sizeof(s->path))
		rc = err_set(err, ERR_USAGE, "the path of the store is too long");
	else
		rc = init_store_parts(s, opts, err);
	if (!rc && !db_is_address(opts->db_path))
		rc = take_lock(s, err);
	if (!rc)
		rc = open_store_dbs(s, opts, err);
	s->tokens = tokens_new();
	if (!rc)
		rc = open_artifacts(s, opts, err);
	if (!rc)
		rc = archiver_start(&s->archiver, s, opts->archive_after_ms, err);
	if (!rc && db_is_address(opts->db_path))
		rc = live_start(&s->live, s, opts->db_path, err);
	if (rc) {
		store_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	live_stop(s->live);
	tokens_free(s->tokens);
	store_work_stop(s);
	archiver_stop(s->archiver);
	background_job_free(s->background);
	background_job_free(s->work);
	if (s->last_check)
		arena_free(s->last_check->arena);
	free(s->last_check);
	artifacts_free(s->files);
	columns_free(s->columns);
	keysets_free(s->keysets);
	permitted_cache_free(s->permitted);
	outlines_free(s->outlines);
	archives_free(s->archives);
	readers_free(s->readers);
	committer_stop(s->writer);
	if (s->lock_fd >= 0) {
		if (s->writer && ftruncate(s->lock_fd, 0))
			write_holder(s->lock_fd, "", "");
		close(s->lock_fd);
	}
	free(s);
}

void store_hurry(struct store *s)
{
	committer_hurry(s->writer);
}

int store_work(struct store *s, void (*fn)(void *arg), void (*then)(void *arg), void *arg, struct err *err)
{
	return background_job_start(s->work, fn, then, arg, err);
}

void store_work_stop(struct store *s)
{
	if (!s || !s->work)
		return;
	background_job_cancel(s->work);
	if (s->background)
		background_job_end(s->background);
	background_job_end(s->work);
}

int store_publish(struct store *s, const char *address, const char *token, struct err *err)
{
	int rc;

	if (s->lock_fd < 0)
		return 0;
	if (strpbrk(address, "\n\r") || strpbrk(token, "\n\r") || strlen(address) > 255 || strlen(token) > 127)
		return err_set(err, ERR_USAGE, "store: the server's URL or token is too long or has a line break");
	rc = write_holder(s->lock_fd, address, token);
	return rc ? err_set_errno(err, rc, "%s.lock", s->path) : 0;
}

int store_holder(struct store_holder *ret, const char *db_path, struct err *err)
{
	char path[PATH_MAX];
	int fd, rc = lock_path(path, db_path, err);

	if (rc)
		return rc;
	if (db_is_address(db_path))
		return err_set(err, ERR_NOENT, "several servers may use a database: no single one holds it");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOENT, "%s is not in use", db_path);
	if (fd < 0)
		return err_set_errno(err, errno, "%s", path);
	if (!flock(fd, LOCK_SH | LOCK_NB)) {
		close(fd);
		return err_set(err, ERR_NOENT, "%s is not in use", db_path);
	}
	read_holder(fd, ret);
	close(fd);
	return 0;
}

int store_watch(struct store *s, void (*fn)(void *arg, uint64_t rev), void *arg)
{
	return s->writer ? committer_watch(s->writer, fn, arg) : ERR_NOSPC;
}

void store_unwatch(struct store *s, int handle)
{
	if (s->writer)
		committer_unwatch(s->writer, handle);
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
	char name[PATH_MAX + 8];
	struct stat sb;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return stat(name, &sb) ? 0 : (uint64_t)sb.st_size;
}

void store_fold(struct store *s, double wait_s)
{
	double end_s = clock_mono_s() + wait_s;
	struct store_stats now;

	if (!s->writer)
		return;
	committer_mark_stale(s->writer);
	committer_fold_soon(s->writer);
	for (store_stats(s, &now); now.log_points && clock_mono_s() < end_s; store_stats(s, &now))
		clock_sleep_s(0.002);
}

static void add_archive_stats(struct store *s, struct store_stats *ret)
{
	struct archiver_stats a;

	archiver_stats(s->archiver, &a);
	ret->archives = s->archiver;
	ret->archived_runs = a.runs;
	ret->archived_series = a.series;
	ret->archived_points = a.points;
	ret->archived_bytes = a.bytes;
	ret->archive_returns = a.returns;
	ret->archive_failures = a.failures;
	ret->archived_last_ms = a.last_ms;
}

void store_stats(struct store *s, struct store_stats *ret)
{
	if (s->writer)
		committer_stats(s->writer, ret);
	else
		*ret = (struct store_stats){ .write_error = ERR_NOSPC,
					     .write_error_text = "no space left on the disk" };
	ret->db_bytes = file_bytes(s->path, "");
	ret->wal_bytes = file_bytes(s->path, "-wal");
	ret->sqlite_bytes = db_memory_bytes();
	ret->outline_bytes = outlines_bytes(s->outlines);
	add_archive_stats(s, ret);
	ret->rw_handles = 1;
	ret->sqlite_version = db_engine(NULL);
}

const char *store_address_key(const struct store *s)
{
	return s->address_key;
}

const char *store_id(const struct store *s)
{
	return s->id;
}

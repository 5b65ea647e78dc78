/* SPDX-License-Identifier: Apache-2.0 */
/* journal_file.c: names, creates and appends to a journal file. */
#include "tracker/run/run_inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "config.h"
#include "tracker/base/clock.h"
#include "tracker/event/record.h"

#define BUF_BYTES_MAX (64u << 20)
#define NAME_TRIES 1000u

struct journal {
	struct journal_opts opts;
	char host[FILE_NAME_BYTES];
	char writer_id[NAMES_ID_BYTES];
	char path[4096];
	int fd;
	struct buf buf;
	size_t done;	/* bytes of buf that are written */
	uint64_t bytes; /* in the file before buf */
	bool broken;	/* this file cannot be continued */
};

/* The part of the file's name before its time, by role. */
static void format_name_prefix(const struct journal *j, char *to, size_t cap)
{
	int rank = j->opts.header.rank;

	if (rank == 0)
		snprintf(to, cap, "events.out.tfevents.");
	else if (rank == EVENT_RANK_LAUNCHER)
		snprintf(to, cap, "launcher.");
	else
		snprintf(to, cap, "rank-%d.", rank);
}

/* Readers read files in the order of their names, so a new file must have a later time than every older one. */
static long long find_newest_time(const char *dir, const char *prefix)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	long long newest = 0, t;

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		t = strtoll(e->d_name + strlen(prefix), NULL, 10);
		if (t > newest && t < 9999999999)
			newest = t;
	}
	if (d)
		closedir(d);
	return newest;
}

/* Creates the file under a new name, with the next time if an older file has the current time or a later one. */
static int create_journal_file(struct journal *j, struct err *err)
{
	char prefix[64];
	long long now = (long long)clock_wall_s(), newest;

	format_name_prefix(j, prefix, sizeof(prefix));
	newest = find_newest_time(j->opts.dir, prefix);
	if (now <= newest)
		now = newest + 1;
	for (unsigned n = 0; n < NAME_TRIES; n++) {
		int len = snprintf(j->path, sizeof(j->path), "%s/%s%010lld.%s.%lld.%u%s", j->opts.dir, prefix, now,
				   j->host, (long long)getpid(), n, j->opts.header.rank == 0 ? "" : ".journal");

		if (len < 0 || (size_t)len >= sizeof(j->path))
			return err_set(err, ERR_USAGE, "%.200s…: the journal's path is too long", j->opts.dir);
		j->fd = open(j->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (j->fd >= 0)
			return (void)flock(j->fd, LOCK_EX | LOCK_NB), 0; /* for check_other_writer */
		if (errno != EEXIST)
			break;
	}
	return err_set_errno(err, errno, "cannot create the journal %s", j->path);
}

/* The name of a new file survives a power failure only after its folder has been synced. */
static void sync_journal_folder(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!fsync(fd); /* some filesystems refuse; the file's own sync decides */
	close(fd);
}

static void add_opening_records(struct journal *j, struct buf *b)
{
	struct event_header h = j->opts.header;
	double now = clock_wall_s();

	h.writer_id = (struct event_text){ j->writer_id, strlen(j->writer_id) };
	h.host = (struct event_text){ j->host, strlen(j->host) };
	h.pid = getpid();
	h.version = (struct event_text){ PACKAGE_STRING, strlen(PACKAGE_STRING) };
	encode_header(b, now, &h);
	if (h.rank != EVENT_RANK_LAUNCHER)
		encode_session_start(b, now, h.first_step);
}

/* Begins a new file: the header, then the contents of buf. */
static int begin_journal_file(struct journal *j, struct err *err)
{
	struct buf fresh;
	int rc;

	if (names_draw_id(j->writer_id))
		return err_set_errno(err, errno, "cannot get random bytes for an id");
	rc = create_journal_file(j, err);
	if (rc)
		return rc;
	sync_journal_folder(j->opts.dir);
	buf_init(&fresh, BUF_BYTES_MAX);
	add_opening_records(j, &fresh);
	buf_add(&fresh, j->buf.data, j->buf.len);
	if (buf_failed(&fresh)) {
		buf_done(&fresh);
		return err_nomem(err, NULL);
	}
	buf_done(&j->buf);
	j->buf = fresh;
	j->done = 0;
	j->bytes = 0;
	j->broken = false;
	return 0;
}

int journal_open(struct journal **ret, const struct journal_opts *opts, struct err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return err_nomem(err, NULL);
	j->opts = *opts;
	j->fd = -1;
	names_host(j->host);
	buf_init(&j->buf, BUF_BYTES_MAX);
	rc = begin_journal_file(j, err);
	if (!rc)
		rc = journal_write(j, err);
	if (rc) {
		journal_close(j);
		return rc;
	}
	*ret = j;
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0) {
		(void)flock(j->fd, LOCK_UN); /* also where a child of fork() has the file */
		close(j->fd);
	}
	buf_done(&j->buf);
	free(j);
}

struct buf *journal_buf(struct journal *j)
{
	return &j->buf;
}

/* Abandons the broken file: its whole records stay, the rest of buf moves to a new file. */
static int replace_journal_file(struct journal *j, struct err *err)
{
	size_t whole = record_whole(j->buf.data, j->done);

	buf_consume(&j->buf, whole);
	j->done = 0;
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
	return begin_journal_file(j, err);
}

static bool is_retriable_errno(int errno_value)
{
	return errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EAGAIN || errno_value == EFBIG;
}

int journal_write(struct journal *j, struct err *err)
{
	int rc = j->broken ? replace_journal_file(j, err) : 0;

	if (rc)
		return rc;
	while (j->done < j->buf.len) {
		ssize_t n = pwrite(j->fd, j->buf.data + j->done, j->buf.len - j->done, (off_t)(j->bytes + j->done));

		if (n > 0) {
			j->done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			j->broken = n < 0 && !is_retriable_errno(errno);
			return err_set_errno(err, n ? errno : ENOSPC, "cannot write the journal %s", j->path);
		}
	}
	j->bytes += j->buf.len;
	j->done = 0;
	buf_reset(&j->buf);
	return 0;
}

int journal_dup(const struct journal *j)
{
	return j->fd < 0 ? -1 : fcntl(j->fd, F_DUPFD_CLOEXEC, 0);
}

const char *journal_path(const struct journal *j)
{
	return j->path;
}

const char *journal_writer_id(const struct journal *j)
{
	return j->writer_id;
}

uint64_t journal_bytes(const struct journal *j)
{
	return j->bytes;
}

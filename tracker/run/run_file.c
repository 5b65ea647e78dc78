/* SPDX-License-Identifier: Apache-2.0 */
/* run_file.c: files that are stored with a run: copied into its folder, recorded in its journal, queued for the file
 * uploader. Independent of how they are sent. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/sha256.h"
#include "tracker/base/utf8.h"
#include "tracker/run/run_inside.h"

#define PIECE_BYTES ((size_t)1 << 20)

/* Returns what is wrong with a file's name, or NULL. */
static const char *check_file_name(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (!n || n > LIMIT_file_name_bytes || !utf8_valid(name, n))
		return "the name is empty, longer than 1000 bytes, or not UTF-8";
	for (const char *part = name;; part++) {
		size_t len = strcspn(part, "/");

		if (!len || len > NAME_MAX || (part[0] == '.' && (len == 1 || (len == 2 && part[1] == '.'))))
			return "the name needs parts separated by single slashes, none of them \".\" or \"..\"";
		part += len;
		if (!*part)
			break;
	}
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '\\')
			return "the name contains a backslash or a control character";
	return NULL;
}

/* A copy in progress. */
struct file_copy {
	int from, to;
	const char *writer_id; /* of the run's journal */
	char *piece;
	struct sha256 sha256;
	uint64_t bytes;
};

static int copy_contents(struct file_copy *c, const char *path, struct err *err)
{
	for (;;) {
		ssize_t n = read(c->from, c->piece, PIECE_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set_errno(err, errno, "cannot read %s", path);
		if (!n)
			return 0;
		sha256_add(&c->sha256, c->piece, (size_t)n);
		c->bytes += (uint64_t)n;
		if (file_write(c->to, c->piece, (size_t)n))
			return err_set_errno(err, errno, "cannot write the copy of %s", path);
	}
}

static int open_source_file(struct file_copy *c, const char *path, struct err *err)
{
	struct stat st;

	c->from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (c->from < 0 || fstat(c->from, &st)) {
		err_set_errno(err, errno, "cannot read %s", path);
		return err->code = ERR_USAGE;
	}
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%s is not a regular file", path);
	c->piece = malloc(PIECE_BYTES);
	return c->piece ? 0 : err_nomem(err, NULL);
}

/* Copies the file atomically: the target is complete or missing. */
static int copy_to_folder(struct file_copy *c, const char *path, const char *to, struct err *err)
{
	static atomic_uint copies; /* counts in this process, whose threads may copy to the same name at once */
	const char *name = strrchr(to, '/') + 1;
	char part[FILE_WHOLE_PART];
	struct file_whole f;
	int rc;

	snprintf(part, sizeof(part), "%.*s.%.8s-%u.part", (int)(name - to), to, c->writer_id,
		 atomic_fetch_add(&copies, 1));
	if (file_whole_open(&f, part))
		return err_set_errno(err, errno, "cannot write %s", to);
	c->to = f.fd;
	rc = copy_contents(c, path, err);
	if (!rc && file_whole_keep(&f, to))
		rc = err_set_errno(err, errno, "cannot write %s", to);
	file_whole_drop(&f);
	return rc;
}

static void post_file_notice(void *user, const char *text)
{
	warn_post(((struct dptrack_run *)user)->warn, WARN_FILE, "%s", text);
}

/* Queues the file for upload; the first file starts the file uploader. */
static void upload_stored_file(struct dptrack_run *run, const char *path, const char *name)
{
	struct err err = ERR_INIT;
	int rc = 0;

	if (!run->url)
		return;
	pthread_mutex_lock(&run->files_lock);
	if (!run->courier)
		rc = file_uploader_start(&run->courier,
					 &(struct file_uploader_opts){ .url = run->url,
								       .token = run->token,
								       .run_id = run->id,
								       .notice = post_file_notice,
								       .user = run },
					 &err);
	rc = rc ? rc : file_uploader_send(run->courier, path, name);
	pthread_mutex_unlock(&run->files_lock);
	if (rc)
		warn_post(run->warn, WARN_FILE, "file \"%s\" is not sent: %s", name,
			  err.code ? err.text : "out of memory");
}

/* Copies the file, hashes it, queues it for upload and adds its record. */
static int store_file(struct dptrack_run *run, const char *name, const char *path, struct err *err)
{
	struct file_copy c = { .from = -1, .writer_id = journal_writer_id(run->journal) };
	char to[PATH_MAX], digest[65];
	int n = snprintf(to, sizeof(to), "%s/" RUN_FILES "/%s", run->folder.dir, name), rc;

	if (n < 0 || (size_t)n >= sizeof(to))
		return err_set(err, ERR_USAGE, "the path is too long");
	sha256_init(&c.sha256);
	rc = open_source_file(&c, path, err);
	rc = rc ? rc : file_make_parents(to, 0777, err);
	rc = rc ? rc : copy_to_folder(&c, path, to, err);
	free(c.piece);
	if (c.from >= 0)
		close(c.from);
	if (rc)
		return rc;
	sha256_end(&c.sha256, digest);
	upload_stored_file(run, to, name);
	rc = records_file(run->records, &(struct encode_file){ .name = { name, strlen(name) },
								 .sha256 = { digest, 64 }, .bytes = c.bytes });
	return rc ? err_set(err, rc, "the write queue is full") : 0;
}

int dptrack_file(struct dptrack_run *run, const char *name, const char *path)
{
	struct err err = ERR_INIT;
	const char *why;
	int rc;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	why = check_file_name(name);
	rc = why ? err_set(&err, ERR_USAGE, "%s", why) : store_file(run, name, path, &err);
	if (rc)
		warn_post(run->warn, WARN_FILE, "file \"%.200s\" is not stored: %s", name ? name : "", err.text);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* blob.c: moves a file into the store and out of it. Work that waits for the disk runs on its own thread, so that the
 * other connections of the worker do not wait. */
#include "tracker/base/text.h"
#include "tracker/base/thread.h"
#include "web/api/blob.h"

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* An upload or a removal in progress. */
struct blob_job {
	struct call *c;
	struct blob_put put;
	struct blob_remove remove;
	struct artifact_upload *upload;
	struct artifact_file file;
	struct buf picture; /* bytes of a picture, for its row; failed: not a picture, or too large */
	struct artifact_files files; /* to be removed */
	struct err err;
	int rc;
	void (*run)(struct blob_job *w);
};

static void *run_blob_thread(void *arg)
{
	struct blob_job *w = arg;

	w->run(w);
	call_wake(w->c);
	return NULL;
}

/* Runs w->run on another thread, then resume on the call's thread. Without a thread both run here. */
static enum call_next start_blob_job(struct blob_job *w, enum call_next (*resume)(struct call *c))
{
	w->c->resume = resume;
	if (!thread_start_detached(run_blob_thread, w, 256 << 10))
		return CALL_WAIT;
	w->run(w);
	return resume(w->c);
}

/* --- uploads */

static void drop_blob_upload(void *arg)
{
	struct blob_job *w = arg;

	artifact_end(w->upload);
	buf_done(&w->picture);
}

static int write_upload_piece(struct call *c, const void *bytes, size_t n)
{
	struct blob_job *w = c->own;
	int rc = artifact_write(w->upload, bytes, n, &w->err);

	if (rc == ARTIFACT_WAIT)
		return CALL_LATER;
	if (rc >= 0)
		buf_add(&w->picture, bytes, n);
	if (rc >= 0)
		return 0;
	w->put.fail(c, &w->err);
	return -1;
}

static void wake_for_upload_room(void *arg)
{
	call_wake(arg);
}

static void commit_upload(struct blob_job *w)
{
	w->rc = artifact_commit(w->upload, &w->file, &w->err);
}

static enum call_next finish_put(struct call *c, const struct ingest_result *res)
{
	struct blob_job *w = c->own;

	return res->code ? w->put.fail(c, &res->err) : w->put.then(c, &w->file);
}

static enum call_next record_upload(struct call *c)
{
	struct blob_job *w = c->own;
	const struct artifact_digest d = { .path = w->put.path, .bytes = (int64_t)w->file.bytes,
					   .time_ns = w->file.time_ns,
					   .object = w->file.object[0] ? w->file.object : NULL,
					   .content =
						   w->picture.len && !buf_failed(&w->picture) ? w->picture.data : NULL,
					   .sha256 = w->file.sha256 };
	const struct ingest_op op = { .kind = &artifact_change_put, .more = &d };

	if (w->rc)
		return w->put.fail(c, &w->err);
	return api_submit(c, &(struct api_change){ .op = &op, .keep_errors = true, .then = finish_put });
}

static enum call_next finish_upload_body(struct call *c)
{
	struct blob_job *w = c->own;

	w->run = commit_upload;
	return start_blob_job(w, record_upload);
}

/* The announced length, so that a file that is too large is refused before it is sent; 0: unknown. */
static uint64_t read_announced_bytes(const struct call *c)
{
	const char *text = c->host->header(c, "Content-Length");

	return text && !c->host->header(c, "Content-Encoding") ? strtoull(text, NULL, 10) : 0;
}

enum call_next blob_put(struct call *c, const struct blob_put *put)
{
	struct blob_job *w = arena_alloc(c->arena, sizeof(*w));

	call_defer(c, drop_blob_upload, w);
	w->c = c;
	w->put = *put;
	buf_init(&w->picture, artifact_picture_room(put->path));
	if (artifact_may_write(c->api->store, put->path, &w->err) ||
	    artifact_fits(store_artifacts(c->api->store), read_announced_bytes(c), &w->err))
		return put->fail(c, &w->err);
	if (artifact_begin(&w->upload, store_artifacts(c->api->store), put->path,
			   &(struct artifact_room){ wake_for_upload_room, c }, &w->err))
		return put->fail(c, &w->err);
	c->own = w;
	c->take = write_upload_piece;
	c->resume = finish_upload_body;
	return CALL_BODY;
}

/* --- removals */

static void list_blob_files(struct blob_job *w)
{
	struct store *s = w->c->api->store;

	if (artifacts_folder(store_artifacts(s)))
		w->rc = artifact_files(s, w->remove.path, w->c->arena, &w->files, &w->err);
}

static void remove_blob_files(struct blob_job *w)
{
	w->rc = artifact_leave(w->c->api->store, w->remove.path, &w->err);
}

static enum call_next finish_blob_removal(struct call *c)
{
	struct blob_job *w = c->own;

	return w->rc ? w->remove.fail(c, &w->err) : w->remove.then(c);
}

static enum call_next start_blob_removal(struct call *c, const struct ingest_result *res)
{
	struct blob_job *w = c->own;

	w->run = remove_blob_files;
	return res->code ? w->remove.fail(c, &res->err) : start_blob_job(w, finish_blob_removal);
}

static enum call_next record_blob_removal(struct call *c)
{
	struct blob_job *w = c->own;
	const struct ingest_op op = { .kind = &artifact_change_delete, .name = w->remove.path, .more = &w->files };

	if (w->rc)
		return w->remove.fail(c, &w->err);
	return api_submit(c, &(struct api_change){ .op = &op, .keep_errors = true, .then = start_blob_removal });
}

enum call_next blob_remove(struct call *c, const struct blob_remove *remove)
{
	struct blob_job *w = arena_alloc(c->arena, sizeof(*w));

	*w = (struct blob_job){ .c = c, .remove = *remove, .run = list_blob_files };
	if (artifact_may_write(c->api->store, remove->path, &w->err))
		return remove->fail(c, &w->err);
	c->own = w;
	return start_blob_job(w, record_blob_removal);
}

/* --- reading, on a thread of the caller */

static void wake_reader(void *arg)
{
	sem_post(arg);
}

static int read_object(struct call *c, const struct artifact_file *f, struct buf *to, struct err *err)
{
	const struct artifact_read_opts opts = { .file = f, .n = f->bytes };
	struct artifact_read *r;
	int rc = artifact_read_begin(&r, store_artifacts(c->api->store), &opts, err);
	sem_t more;

	if (rc)
		return rc;
	sem_init(&more, 0, 0);
	while ((rc = artifact_read_next(r, to, err)) > ARTIFACT_END && !buf_failed(to)) {
		if (rc != ARTIFACT_WAIT)
			continue;
		artifact_read_wait(r, wake_reader, &more);
		sem_wait(&more);
	}
	artifact_read_end(r);
	sem_destroy(&more);
	return rc < 0 ? rc : 0;
}

int blob_load(struct call *c, const char *place, struct buf *to, struct err *err)
{
	struct artifact_file f;
	ssize_t n = 1;
	int rc = artifact_open(c->api->store, place, &f, err);

	if (rc || f.fd < 0)
		return rc ? rc : read_object(c, &f, to, err);
	while (n > 0 && !buf_failed(to)) {
		char *room = buf_reserve(to, 65536);

		n = room ? read(f.fd, room, 65536) : 0;
		to->len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		rc = err_set_errno(err, errno, "%s", place);
	close(f.fd);
	return rc;
}

/* --- downloads */

void blob_page(struct blob_page *page, struct artifact_entry **entries, size_t *count)
{
	struct artifact_entry *at = *entries, *end = at + *count;

	while (page->token && at < end && strcmp(at->name, page->token) <= 0)
		at++;
	*entries = at;
	*count = (size_t)(end - at);
	if (*count > (uint64_t)page->limit) {
		*count = (size_t)page->limit;
		page->next = at[*count - 1].name;
	}
}

/* MIME type by file extension, with MLflow's choices. */
static const char *blob_type(const char *path)
{
	static const struct {
		const char *end, *type;
	} types[] = {
		{ "png", "image/png" },	      { "jpg", "image/jpeg" },	    { "jpeg", "image/jpeg" },
		{ "gif", "image/gif" },	      { "webp", "image/webp" },	    { "bmp", "image/bmp" },
		{ "svg", "image/svg+xml" },   { "html", "text/html" },	    { "htm", "text/html" },
		{ "pdf", "application/pdf" }, { "zip", "application/zip" }, { "gz", "application/gzip" },
		{ "mp4", "video/mp4" },	      { "wav", "audio/x-wav" },	    { "mp3", "audio/mpeg" },
	};
	static const char plain[] =
		" txt log err cfg conf cnf cf ini properties prop hocon toml yaml yml xml json js py py3 csv tsv md "
		"rst jsonl mlmodel mlproject ";
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *dot = strrchr(name, '.');
	char word[16] = " ";
	size_t n = 1, i;

	for (name = dot ? dot + 1 : name; *name && n < sizeof(word) - 2; name++)
		word[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name + 32 : *name);
	if (*name)
		return "application/octet-stream";
	word[n] = '\0';
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(word + 1, types[i].end))
			return types[i].type;
	word[n] = ' ';
	word[n + 1] = '\0';
	return n > 1 && strstr(plain, word) ? "text/plain" : "application/octet-stream";
}

/* Returns true if a browser may show the type in its window: pictures and plain text. */
static bool is_shown_by_browser(const char *type)
{
	return (!strncmp(type, "image/", 6) && strcmp(type, "image/svg+xml")) || !strcmp(type, "text/plain");
}

static bool is_attr_char(unsigned char ch)
{
	return (ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z') ||
	       (ch && strchr("!#$&+-.^_`|~", ch));
}

/* Formats Content-Disposition by RFC 6266: a plain or quoted ASCII name, and the UTF-8 name where it differs. */
static const char *format_disposition(struct call *c, const char *path, bool download)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *at, *text;
	bool token = true, ascii = true;
	struct buf b;

	buf_init(&b, SIZE_MAX);
	for (at = name; *at; at++) {
		token = token && is_attr_char((unsigned char)*at);
		ascii = ascii && (unsigned char)*at < 0x80;
	}
	buf_adds(&b, download ? "attachment; filename=" : "inline; filename=");
	if (!token)
		buf_addc(&b, '"');
	for (at = name; *at; at++)
		if ((unsigned char)*at < 0x80)
			buf_addf(&b, *at == '"' ? "\\%c" : "%c", *at);
	if (!token)
		buf_addc(&b, '"');
	if (!ascii)
		buf_adds(&b, "; filename*=UTF-8''");
	for (at = ascii ? "" : name; *at; at++)
		buf_addf(&b, is_attr_char((unsigned char)*at) ? "%c" : "%%%02X", (unsigned char)*at);
	text = arena_strdup(c->arena, b.data);
	buf_done(&b);
	return text;
}

/* Formats the digest as in RFC 9530. */
static const char *format_repr_digest(struct call *c, const char *hex)
{
	unsigned char raw[32] = { 0 };
	const char *text;
	struct buf b;

	text_unhex(raw, hex, sizeof(raw));
	buf_init(&b, 64);
	text_add_base64(&b, raw, sizeof(raw), false);
	text = arena_printf(c->arena, "sha-256=:%s:", b.data);
	buf_done(&b);
	return text;
}

static bool parse_range_digits(const char **at, uint64_t *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return !errno;
}

enum blob_range blob_range(const char *text, uint64_t bytes, uint64_t *from, uint64_t *count)
{
	uint64_t first, last = bytes ? bytes - 1 : 0;
	const char *at = text;

	if (strncmp(text, "bytes=", 6))
		return BLOB_WHOLE;
	at += 6;
	if (*at == '-') {
		at++;
		if (!parse_range_digits(&at, &first) || *at)
			return BLOB_WHOLE;
		if (!first || !bytes)
			return BLOB_BAD;
		*from = first < bytes ? bytes - first : 0;
		*count = bytes - *from;
		return BLOB_PART;
	}
	if (!parse_range_digits(&at, &first) || *at++ != '-' ||
	    (*at && (!parse_range_digits(&at, &last) || *at || last < first)))
		return BLOB_WHOLE;
	if (first >= bytes)
		return BLOB_BAD;
	last = last < bytes ? last : bytes - 1;
	*from = first;
	*count = last - first + 1;
	return BLOB_PART;
}

static void apply_range_header(struct call *c, uint64_t bytes)
{
	const char *range = c->host->header(c, "Range"), *only = c->host->header(c, "If-Range");
	const char *have = c->host->header(c, "If-None-Match");
	enum blob_range kind;

	if (!range || (only && strcmp(only, c->reply.etag)) || (have && strstr(have, c->reply.etag)))
		return;
	kind = blob_range(range, bytes, &c->file.from, &c->file.bytes);
	if (kind == BLOB_PART) {
		c->status = 206;
		call_header(c, "Content-Range",
			    arena_printf(c->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, c->file.from,
					 c->file.from + c->file.bytes - 1, bytes));
	} else if (kind == BLOB_BAD) {
		call_fail(c, CALL_range, NULL, "Range: the file has %" PRIu64 " bytes", bytes);
		call_header(c, "Content-Range", arena_printf(c->arena, "bytes */%" PRIu64, bytes));
	}
}

static void close_blob_file(void *arg)
{
	close((int)(intptr_t)arg);
}

static int fill_from_object(void *state, struct buf *out, bool tick, struct err *err)
{
	int rc = artifact_read_next(state, out, err);

	(void)tick;
	return rc < 0 ? rc : rc == ARTIFACT_MORE ? STREAM_MORE : rc == ARTIFACT_WAIT ? STREAM_LATER : STREAM_END;
}

static void wait_for_object(void *state, void (*wake)(void *arg), void *arg)
{
	artifact_read_wait(state, wake, arg);
}

static void release_object_read(void *state)
{
	artifact_read_end(state);
}

/* A file of an object store that is fetched while it is sent. */
struct object_fetch {
	struct artifact_read *read;
	enum call_next (*fail)(struct call *c, const struct err *err);
	bool sent; /* the reply owns the read */
};

static void drop_object_fetch(void *arg)
{
	struct object_fetch *f = arg;

	if (!f->sent)
		artifact_read_end(f->read);
}

/* Runs when the first piece has arrived or failed: until then no header has been sent, so an error can be reported. */
static enum call_next begin_object_stream(struct call *c)
{
	struct object_fetch *f = c->own;
	struct err err = ERR_INIT;

	if (artifact_read_result(f->read, &err)) {
		c->reply.etag = c->reply.disposition = NULL;
		c->reply.more_count = 0;
		return f->fail(c, &err);
	}
	f->sent = true;
	c->stream = (struct call_stream){ .fill = fill_from_object,
					  .later = wait_for_object,
					  .release = release_object_read,
					  .state = f->read,
					  .sized = true,
					  .bytes = c->file.bytes };
	return CALL_DONE;
}

static void wake_object_fetch(void *arg)
{
	call_wake(arg);
}

/* Starts the read of the range in c->file. */
static enum call_next fetch_object(struct call *c, const struct artifact_file *file,
				   enum call_next (*fail)(struct call *c, const struct err *err))
{
	const struct artifact_read_opts opts = { .file = file, .from = c->file.from, .n = c->file.bytes };
	struct object_fetch *f = arena_alloc(c->arena, sizeof(*f));
	struct err err = ERR_INIT;

	call_defer(c, drop_object_fetch, f);
	f->fail = fail;
	if (artifact_read_begin(&f->read, store_artifacts(c->api->store), &opts, &err))
		return fail(c, &err);
	c->own = f;
	c->resume = begin_object_stream;
	artifact_read_wait(f->read, wake_object_fetch, c);
	return CALL_WAIT;
}

static void describe_blob(struct call *c, const struct artifact_file *f, const char *path, bool download)
{
	time_t when = (time_t)(f->time_ns / 1000000000);
	char changed[64];
	struct tm tm;

	c->type = blob_type(path);
	c->reply.disposition = format_disposition(c, path, download || !is_shown_by_browser(c->type));
	c->reply.etag =
		f->sha256[0] ? arena_printf(c->arena, "\"%s\"", f->sha256)
			     : arena_printf(c->arena, "W/\"%" PRIx64 "-%" PRIx64 "\"", f->bytes, (uint64_t)f->time_ns);
	if (gmtime_r(&when, &tm) && strftime(changed, sizeof(changed), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		call_header(c, "Last-Modified", arena_strdup(c->arena, changed));
	call_header(c, "Accept-Ranges", "bytes");
	if (f->sha256[0])
		call_header(c, "Repr-Digest", format_repr_digest(c, f->sha256));
}

/* Allows the scripts of the file itself, no addresses but data and blob URLs, and no origin: no cookies, no access to
 * the page of the server. */
static const char frame_csp[] = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' "
				"data: blob:; style-src 'unsafe-inline' data:; img-src data: blob:; font-src data:; "
				"media-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

void blob_allow_frame(struct call *c)
{
	c->reply.csp = frame_csp;
	c->reply.framed = true;
	c->reply.disposition = NULL;
}

static void allow_framing(struct call *c, const struct blob_reply *reply)
{
	if (reply->frame && !strcmp(c->type, "text/html"))
		blob_allow_frame(c);
}

enum call_next blob_reply(struct call *c, const struct blob_reply *reply)
{
	struct err err = ERR_INIT;
	struct artifact_file f;

	if (artifact_open(c->api->store, reply->path, &f, &err))
		return reply->fail(c, &err);
	if (f.fd >= 0)
		call_defer(c, close_blob_file, (void *)(intptr_t)f.fd);
	describe_blob(c, &f, reply->path, reply->download);
	allow_framing(c, reply);
	c->file = (struct call_file){ f.fd >= 0, f.fd, 0, f.bytes };
	apply_range_header(c, f.bytes);
	return f.fd >= 0 || c->status >= 300 ? CALL_DONE : fetch_object(c, &f, reply->fail);
}

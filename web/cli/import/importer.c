/* SPDX-License-Identifier: Apache-2.0 */
/* importer.c: writes imported runs as journals, into a folder or to a server. */
#include "web/cli/import/importer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/base/utf8.h"
#include "web/cli/journals.h"
#include "web/store/base/beneath.h"

#define LEFT_SHOWN 100
#define OUTSIDE "%.300s: is outside the imported folder: name its folder with --files-from DIR"
#define JOURNAL_MAX ((size_t)8 << 30)

int importer_init(struct importer *b, const struct importer_target *target, struct err *err)
{
	*b = (struct importer){ .target = target, .spool_fd = -1 };
	terminal_progress_begin(&b->progress, "runs imported", 0);
	b->left_out = map_new(sizeof(uint64_t));
	b->kept = arena_new();
	if (!target->url)
		return 0;
	b->spool_fd = memfd_create("journal", MFD_CLOEXEC);
	if (b->spool_fd < 0)
		return err_set_errno(err, errno, "cannot create a file in memory");
	return journals_server(&b->http, target->url, err);
}

void importer_done(struct importer *b)
{
	terminal_progress_clear(&b->progress);
	if (b->spool_fd >= 0)
		close(b->spool_fd);
	map_free(b->left_out);
	arena_free(b->kept);
	http_close(b->http);
}

/* --- items that cannot be imported ------------------------------------------------------------------------------- */

void importer_leave_out(struct importer *b, const char *fmt, ...)
{
	char text[1500], key[sizeof(text)];
	uint64_t *n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	utf8_escape(key, sizeof(key), text);
	n = map_put(b->left_out, key, strlen(key) + 1);
	if (n)
		++*n;
}

int importer_skip(struct importer *b, int rc, const struct err *why, struct err *err)
{
	if (rc >= 0)
		return 0;
	if (rc == ERR_NOMEM || rc == ERR_PEER || rc == ERR_BUSY || rc == ERR_NOSPC)
		return err_set(err, rc, "%s", why->text);
	importer_leave_out(b, "%s", why->text);
	return 0;
}

/* The descriptor of what is at the path; -1 with errno, EXDEV: elsewhere. */
static int open_input(const struct importer *b, const char *path)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	int fd = b->folder ? beneath_open_real(b->folder, path, flags) : (errno = EXDEV, -1);

	for (size_t i = 0; b->elsewhere && i < b->elsewhere->count && fd < 0 && errno == EXDEV; i++)
		fd = beneath_open_real(b->elsewhere->items[i], path, flags);
	return fd;
}

int importer_map(const struct importer *b, struct file_map *ret, const char *path, struct err *err)
{
	int fd = open_input(b, path);

	if (fd < 0 && errno == EXDEV)
		return err_set(err, ERR_USAGE, OUTSIDE, path);
	return file_map_fd(ret, fd, path, err);
}

bool importer_allows(struct importer *b, const char *path)
{
	int fd = open_input(b, path);

	if (fd >= 0)
		close(fd);
	else if (errno == EXDEV)
		importer_leave_out(b, OUTSIDE, path);
	return fd >= 0 || errno != EXDEV;
}

static bool may_follow_link(const struct importer *b, const char *path)
{
	struct file_map map;

	if (importer_map(b, &map, path, NULL))
		return false;
	file_map_close(&map);
	return true;
}

enum importer_entry importer_entry(struct importer *b, const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		importer_leave_out(b, "%s: %s", path, strerror(errno));
	else if (S_ISREG(st.st_mode))
		return ENTRY_FILE;
	else if (S_ISDIR(st.st_mode))
		return ENTRY_FOLDER;
	else if (!S_ISLNK(st.st_mode))
		importer_leave_out(b, "%s: not a regular file", path);
	else if (may_follow_link(b, path))
		return ENTRY_FILE;
	else
		importer_leave_out(b, "%s: a symbolic link to a folder, or to no file below the imported folder: name "
				   "the file's folder with --files-from DIR", path);
	return ENTRY_NONE;
}

void importer_say_left_out(const struct importer *b, const char *how)
{
	size_t n = map_count(b->left_out), len;

	for (size_t i = 0; i < n && i < LEFT_SHOWN; i++)
		printf("%s %" PRIu64 " times %s\n", how, *(uint64_t *)map_at(b->left_out, i),
		       (const char *)map_key_at(b->left_out, i, &len));
	if (n > LEFT_SHOWN)
		printf("… and %zu more\n", n - LEFT_SHOWN);
}

/* --- journals --------------------------------------------------------------------------------------------------- */

void importer_id(char ret[33], const char *fmt, ...)
{
	char text[8192], hex[65];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sha256_hex(text, strlen(text), hex);
	snprintf(ret, 33, "%.32s", hex);
}

static bool write_to_file(FILE *f, const struct buf *head, const struct buf *records)
{
	return fwrite(head->data, 1, head->len, f) != head->len ||
	       (records->len && fwrite(records->data, 1, records->len, f) != records->len) || fflush(f);
}

/* Does not sync each file, which would take milliseconds; importer_finish syncs all of them. */
static int write_journal(const char *path, const struct buf *head, const struct buf *records, struct err *err)
{
	char temporary[4200];
	FILE *f;
	bool failed;

	snprintf(temporary, sizeof(temporary), "%s.part", path);
	f = fopen(temporary, "wbe");
	if (!f)
		return err_set_errno(err, errno, "cannot write %s", temporary);
	failed = write_to_file(f, head, records);
	failed = fclose(f) || failed;
	if (!failed && !rename(temporary, path))
		return 0;
	err_set_errno(err, errno, "cannot write %s", path);
	unlink(temporary);
	return err ? err->code : ERR_IO;
}

static int store_journal(const struct importer *b, const struct importer_journal *j, const struct buf *head,
			 const struct buf *records, struct err *err)
{
	char experiment[FILE_NAME_BYTES], name[FILE_NAME_BYTES], to[4096];
	int rc;

	file_name_of(experiment, j->experiment);
	file_name_of(name, j->name);
	snprintf(to, sizeof(to), "%.2000s/%s/%s-%.8s/%.500s", b->target->into, experiment, name, j->run, j->file);
	rc = file_make_parents(to, 0777, err);
	return rc ? rc : write_journal(to, head, records, err);
}

static int send_import_journal(const struct importer *b, const struct importer_journal *j, const struct buf *head,
			       const struct buf *records, struct err *err)
{
	char path[64];
	struct journal_push push = {
		.http = b->http, .path = path, .run = j->run, .writer = j->writer, .patience_s = 60
	};
	uint64_t bytes;
	bool failed;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", b->spool_fd);
	f = fopen(path, "wbe");
	failed = !f || write_to_file(f, head, records);
	failed = (f && fclose(f)) || failed;
	if (failed)
		return err_set_errno(err, errno, "cannot store the journal of %s in memory for sending", j->name);
	return journal_push(&push, &bytes, err);
}

int importer_deliver(struct importer *b, const struct importer_journal *j, const struct buf *head,
		     const struct buf *records, struct err *err)
{
	if (buf_failed(head) || buf_failed(records))
		return err_set(err, ERR_NOMEM, "run %s is too large to import", j->name);
	if (b->http)
		return send_import_journal(b, j, head, records, err);
	return b->target->into ? store_journal(b, j, head, records, err) : 0;
}

/* --- an imported run --------------------------------------------------------------------------------------------- */

static struct event_text import_text(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

/* Copies at most `most` bytes of the text, as UTF-8, into the arena. */
static const char *fit_text(struct importer *b, const char *text, size_t most)
{
	size_t n = strlen(text), room = n * 3 + 1 < most + 1 ? n * 3 + 1 : most + 1;
	char *to = arena_alloc(b->kept, room);
	bool cut = false;

	utf8_copy(to, room, text, n, &cut);
	if (cut)
		importer_leave_out(b, "the end of a text of more than %zu bytes", most);
	return to;
}

int importer_run_begin(struct importer_run *r, struct importer *b, const struct importer_run_head *head,
		       struct err *err)
{
	*r = (struct importer_run){ .of = b, .start_s = head->start_s, .part = "" };
	snprintf(r->id, sizeof(r->id), "%s", head->id);
	r->experiment = fit_text(b, b->target->experiment ? b->target->experiment : head->experiment, LIMIT_name_chars);
	r->name = fit_text(b, *head->name ? head->name : "run", LIMIT_name_chars);
	buf_init(&r->points, JOURNAL_MAX);
	buf_init(&r->facts, JOURNAL_MAX);
	if (text_is_hex(head->id, 32, 32))
		return 0;
	return err_set(err, ERR_CORRUPT, "'%.60s': not a run id (expected 32 hex digits)", head->id);
}

static bool check_import_key(struct importer_run *r, const char *key, const char *what)
{
	const char *wrong = key_check(key, strlen(key));

	if (wrong)
		importer_leave_out(r->of, "a %s whose name %s: %.100s", what, wrong, key);
	return !wrong;
}

void importer_point(struct importer_run *r, const char *key, int64_t step, double wall_s, double value)
{
	if (!check_import_key(r, key, "metric"))
		return;
	encode_scalar(&r->points, &(struct encode_scalar){ .key = import_text(key), .step = step, .wall_time = wall_s,
							    .value = value, .rank = EVENT_RANK_RUN });
	r->count++;
}

void importer_param(struct importer_run *r, const char *key, const char *value)
{
	struct encode_param p = { .key = import_text(key), .type = EVENT_TYPE_TEXT };

	if (!check_import_key(r, key, "param"))
		return;
	p.text = import_text(fit_text(r->of, text_hide_secret(key, value), LIMIT_value_bytes));
	encode_param(&r->facts, r->start_s, &p);
}

void importer_param_json(struct importer_run *r, const char *key, json_t *value)
{
	struct encode_param p = { .key = import_text(key), .type = EVENT_TYPE_BOOL, .integer = json_is_true(value) };
	char *text;

	if (json_is_integer(value)) {
		p.type = EVENT_TYPE_I64;
		p.integer = json_integer_value(value);
	} else if (json_is_real(value)) {
		p.type = EVENT_TYPE_F64;
		p.value = json_real_value(value);
	} else if (!json_is_boolean(value)) {
		text = content_text(value);
		importer_param(r, key, text ? text : "");
		free(text);
		return;
	}
	if (check_import_key(r, key, "param"))
		encode_param(&r->facts, r->start_s, &p);
}

void importer_tag(struct importer_run *r, const char *key, const char *value)
{
	if (check_import_key(r, key, "tag"))
		encode_tag(&r->facts, r->start_s, import_text(key),
			   import_text(fit_text(r->of, text_hide_secret(key, value), LIMIT_value_bytes)));
}

void importer_env(struct importer_run *r, const char *key, const char *value)
{
	if (check_import_key(r, key, "fact"))
		encode_env(&r->facts, r->start_s, import_text(key),
			   import_text(fit_text(r->of, value, LIMIT_value_bytes)));
}

void importer_code(struct importer_run *r, const char *name, const char *text)
{
	encode_code(&r->facts, r->start_s, import_text(name), import_text(fit_text(r->of, text, LIMIT_code_bytes)));
}

void importer_alert(struct importer_run *r, double wall_s, const struct encode_alert *a)
{
	encode_alert(&r->points, wall_s, a);
}

void importer_lines(struct importer_run *r, double wall_s, const struct buf *lines)
{
	if (lines->len)
		encode_console(&r->points, wall_s, lines);
}

void importer_media(struct importer_run *r, const char *key, int64_t step, double wall_s, const struct buf *content)
{
	const unsigned char *at = (const unsigned char *)content->data;

	if (content->len > LIMIT_media_bytes || buf_failed(content))
		importer_leave_out(r->of, "an image, table or audio clip of more than %d bytes: %.100s",
				   (int)LIMIT_media_bytes, key);
	else if (check_import_key(r, key, "picture"))
		media_encode(&r->points, &(struct media_place){ import_text(key), step, wall_s, EVENT_RANK_RUN, 0 },
			     (struct event_span){ at, at + content->len });
}

void importer_final(struct importer_run *r, const char *key, int64_t step, double wall_s, double value)
{
	if (!check_import_key(r, key, "metric"))
		return;
	encode_scalar(&r->facts, &(struct encode_scalar){ .key = import_text(key), .step = step, .wall_time = wall_s,
							   .value = value, .rank = EVENT_RANK_RUN });
	r->count++;
}

void importer_note(struct importer_run *r, const char *markdown)
{
	encode_note(&r->facts, r->start_s, import_text(fit_text(r->of, markdown, LIMIT_note_bytes)));
}

void importer_status(struct importer_run *r, enum event_status status, double end_s, const char *reason)
{
	encode_status(&r->facts, end_s, status, import_text(reason));
}

void importer_run_rename(struct importer_run *r, const char *name)
{
	if (*name)
		r->name = fit_text(r->of, name, LIMIT_name_chars);
}

void importer_run_drop(struct importer_run *r)
{
	buf_done(&r->points);
	buf_done(&r->facts);
}

/* Delivers one of the two journals. settled: a digest of its content, which makes a new writer for each version; "" for
 * a journal that only grows. */
static int deliver_run_journal(struct importer_run *r, const char *settled, const char *file, const struct buf *records,
			       struct err *err)
{
	struct importer_journal j = { .run = r->id, .experiment = r->experiment, .name = r->name, .file = file };
	struct event_header h = { .format = 1, .run_id = import_text(r->id), .world_size = 1,
				  .experiment = import_text(r->experiment), .run_name = import_text(r->name),
				  .segment = r->segment, .first_step = r->first_step,
				  .first_epoch = r->first_step };
	char writer[33];
	struct buf head;
	int rc;

	importer_id(writer, "import %s %s%s", r->id, r->part, settled);
	j.writer = writer;
	h.writer_id = import_text(writer);
	buf_init(&head, LIMIT_record_bytes);
	encode_header(&head, r->start_s, &h);
	/* no process writes this journal, so silence does not mean that the run was killed */
	encode_status(&head, r->start_s, EVENT_RUNNING, import_text(""));
	rc = importer_deliver(r->of, &j, &head, records, err);
	buf_done(&head);
	return rc;
}

int importer_run_end(struct importer_run *r, struct err *err)
{
	char points[80], facts[80], digest[65];
	int rc;

	sha256_hex(r->facts.len ? r->facts.data : "", r->facts.len, digest);
	/* two sessions may start in the same second */
	snprintf(points, sizeof(points), "events.out.tfevents.%010" PRId64 ".import.0.%d", (int64_t)r->start_s,
		 r->segment);
	snprintf(facts, sizeof(facts), "rank-0.%010" PRId64 ".import.0.%d.journal", (int64_t)r->start_s, r->segment);
	rc = deliver_run_journal(r, "", points, &r->points, err);
	if (!rc)
		rc = deliver_run_journal(r, digest, facts, &r->facts, err);
	if (!rc) {
		r->of->runs++;
		r->of->points += r->count;
		terminal_progress_show(&r->of->progress, r->of->runs);
	}
	importer_run_drop(r);
	return rc;
}

/* --- folders ---------------------------------------------------------------------------------------------------- */

static int compare_dirents(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int folder_each(const char *folder, folder_fn *fn, void *arg, struct err *err)
{
	struct dirent **names = NULL;
	int n = scandir(folder, &names, NULL, compare_dirents), rc = 0;
	char path[4096];

	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		snprintf(path, sizeof(path), "%.3800s/%s", folder, name);
		if (!rc && strcmp(name, ".") && strcmp(name, ".."))
			rc = fn(arg, path, name, err);
		free(names[i]);
	}
	free(names);
	return rc;
}

/* import.c: `dptrack import`: a folder of event files that other programs wrote becomes runs. A file's records are kept
 * byte for byte behind a first record that names the run, so the result is a journal like any other: TensorBoard reads
 * it, and a repeat of the import changes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/buf.h"
#include "tracker/base/sha256.h"
#include "tracker/event/encode.h"
#include "tracker/event/event.h"
#include "tracker/event/key.h"
#include "tracker/event/limits.h"
#include "tracker/event/record.h"
#include "web/cli/cli.h"
#include "web/cli/journals.h"
#include "web/store/base/map.h"

#define FILE_MAX ((size_t)8 << 30)
#define LEFT_SHOWN 100

struct import {
	struct http *http; /* NULL: into a folder */
	const char *from, *into, *experiment;
	int spool_fd;         /* with http: the journal that is being sent, a file without a name */
	struct map *left_out; /* "plugin tag" → uint64_t */
	uint64_t runs, files, scalars, ours, damaged, malformed, cut;
	/* of the folder that is read now */
	char folder[4096];
	int segment;
};

/* The run that a folder of event files becomes: experiment is the first component of its path, the name is the rest. */
struct import_run {
	char id[33], writer[33];
	char experiment[512], name[512];
};

static void name_run(const struct import *im, const char *path, struct import_run *ret)
{
	const char *slash = strrchr(path, '/'), *first = strchr(path, '/');
	size_t folder = slash ? (size_t)(slash - path) : 0;
	char key[8192], hex[65];

	if (!folder)
		snprintf(ret->name, sizeof(ret->name), "imported");
	else if (im->experiment || first == slash)
		snprintf(ret->name, sizeof(ret->name), "%.*s", (int)folder, path);
	else
		snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(slash - first - 1), first + 1);
	if (im->experiment)
		snprintf(ret->experiment, sizeof(ret->experiment), "%s", im->experiment);
	else if (!folder || first == slash)
		snprintf(ret->experiment, sizeof(ret->experiment), "Default");
	else
		snprintf(ret->experiment, sizeof(ret->experiment), "%.*s", (int)(first - path), path);
	snprintf(key, sizeof(key), "%s/%.*s", ret->experiment, (int)folder, path);
	sha256_hex(key, strlen(key), hex);
	snprintf(ret->id, sizeof(ret->id), "%.32s", hex);
	snprintf(key, sizeof(key), "%s/%s", ret->experiment, path);
	sha256_hex(key, strlen(key), hex);
	snprintf(ret->writer, sizeof(ret->writer), "%.32s", hex);
}

/* What a file holds that runs keep, and what they do not. */
struct contents {
	int64_t restart_step; /* at which its writer says that it begins; 0: at the beginning */
	double first_time;
	uint64_t scalars, records;
	bool ours;
};

/* What runs do not keep as it is: by the name of its plugin, or why; and its tag. */
static void count_other(struct import *im, struct event_text what, struct event_text tag)
{
	char key[400];
	uint64_t *n;

	snprintf(key, sizeof(key), "%.*s %.*s", (int)(what.len < 100 ? what.len : 100), what.at,
		 (int)(tag.len < 250 ? tag.len : 250), tag.at);
	for (char *p = key; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' '; /* it is shown on a terminal */
	n = map_put(im->left_out, key, strlen(key) + 1);
	if (n)
		++*n;
}

static struct event_text text_of(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

static void look_at_item(struct import *im, struct contents *c, const struct event *ev, const struct event_item *item)
{
	const char *wrong = item->kind == EVENT_SCALAR ? key_check(item->key.at, item->key.len) : NULL;

	c->ours = c->ours || item->kind == EVENT_HEADER;
	c->scalars += item->kind == EVENT_SCALAR && !wrong;
	if (wrong)
		count_other(im, text_of("scalars whose tag is no key of ours:"), item->key);
	else if (item->kind == EVENT_OTHER)
		count_other(im, item->text, item->key);
	else if (item->kind == EVENT_TEXT)
		count_other(im, text_of("text (its words are in the run's notes)"), item->key);
	if (item->kind == EVENT_SESSION && item->integer == 1 && !c->restart_step && !c->scalars)
		c->restart_step = ev->step;
}

static void look_into(struct import *im, const struct buf *bytes, struct contents *c)
{
	struct record rec;
	size_t at = 0;

	while (record_next(bytes->data, bytes->len, &at, &rec) == RECORD_OK) {
		struct event_item item;
		struct event ev;

		int rc;

		if (event_open(&ev, rec.payload, rec.payload_bytes)) {
			im->malformed++;
			continue;
		}
		if (!c->records++)
			c->first_time = ev.wall_time;
		while ((rc = event_next(&ev, &item)) > 0)
			look_at_item(im, c, &ev, &item);
		im->malformed += rc < 0;
	}
}

/* Takes damaged records out, and what stands behind a damaged length, which cannot be framed any more. */
static void keep_whole(struct import *im, struct buf *bytes)
{
	size_t at = 0, from = 0, kept = 0;
	enum record_state state;
	struct record rec;

	while ((state = record_next(bytes->data, bytes->len, &at, &rec)) == RECORD_OK || state == RECORD_BAD_PAYLOAD) {
		if (state == RECORD_OK) {
			if (kept != from)
				memmove(bytes->data + kept, bytes->data + from, at - from);
			kept += at - from;
		} else {
			at += rec.frame_bytes;
			im->malformed++;
		}
		from = at;
	}
	im->cut += state == RECORD_BAD_LENGTH && kept;
	bytes->len = kept;
}

static int read_whole(const char *path, struct buf *to, struct err *err)
{
	FILE *f = fopen(path, "rbe");
	size_t n = 1;

	if (!f)
		return err_set_errno(err, errno, "cannot read %s", path);
	while (n && !buf_failed(to)) {
		char *at = buf_reserve(to, 1 << 20);

		n = at ? fread(at, 1, 1 << 20, f) : 0;
		to->len += n;
	}
	fclose(f);
	return buf_failed(to) ? err_set(err, ERR_NOMEM, "%s is too large to import in one piece", path) : 0;
}

static bool put(FILE *f, const struct buf *head, const struct buf *records)
{
	return fwrite(head->data, 1, head->len, f) != head->len ||
	       fwrite(records->data, 1, records->len, f) != records->len || fflush(f);
}

static int write_journal(const char *path, const struct buf *head, const struct buf *records, struct err *err)
{
	char temporary[4200];
	FILE *f;
	bool failed;

	snprintf(temporary, sizeof(temporary), "%s.part", path);
	f = fopen(temporary, "wbe");
	if (!f)
		return err_set_errno(err, errno, "cannot write %s", temporary);
	failed = put(f, head, records) || fsync(fileno(f));
	failed = fclose(f) || failed;
	if (!failed && !rename(temporary, path))
		return 0;
	err_set_errno(err, errno, "cannot write %s", path);
	unlink(temporary);
	return err ? err->code : ERR_IO;
}

static void plain_name(char *to, size_t room, const char *name)
{
	size_t n = 0;

	for (; *name && n + 1 < room; name++)
		to[n++] = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *name) ? *name
													     : '_';
	to[n] = 0;
}

static int make_folders(char *path, struct err *err)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			return err_set_errno(err, errno, "cannot make the folder %s", path);
		*p = '/';
	}
	return 0;
}

/* Where the journal of a file is written below the folder of runs. */
static int journal_path(const struct import *im, const struct import_run *run, const char *path, char *ret, size_t room,
			struct err *err)
{
	const char *slash = strrchr(path, '/');
	char experiment[256], name[240]; /* of folders: at most 255 characters, with the run's digits behind the name */

	plain_name(experiment, sizeof(experiment), run->experiment);
	plain_name(name, sizeof(name), run->name);
	snprintf(ret, room, "%.2000s/%s/%s-%.8s/%.500s", im->into, experiment, name, run->id, slash ? slash + 1 : path);
	return make_folders(ret, err);
}

static int keep(const struct import *im, const struct import_run *run, const char *path, const struct buf *head,
		const struct buf *records, struct err *err)
{
	char to[4096];
	int rc = journal_path(im, run, path, to, sizeof(to), err);

	return rc ? rc : write_journal(to, head, records, err);
}

static int send(const struct import *im, const struct import_run *run, const struct buf *head,
		const struct buf *records, struct err *err)
{
	char path[64];
	struct journal_push push = {
		.http = im->http, .path = path, .run = run->id, .writer = run->writer, .patience_s = 60
	};
	uint64_t bytes;
	bool failed;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", im->spool_fd);
	f = fopen(path, "wbe");
	failed = !f || put(f, head, records);
	failed = (f && fclose(f)) || failed;
	if (failed)
		return err_set_errno(err, errno, "cannot keep the journal of %s in memory until it is sent", run->name);
	return journal_push(&push, &bytes, err);
}

static int deliver(struct import *im, const struct import_run *run, const char *path, const struct buf *records,
		   const struct contents *c, struct err *err)
{
	struct event_header h = { .format = 1,
				  .run_id = text_of(run->id),
				  .writer_id = text_of(run->writer),
				  .world_size = 1,
				  .experiment = text_of(run->experiment),
				  .run_name = text_of(run->name),
				  .segment = im->segment,
				  .ordered = true,
				  .first_step = c->restart_step,
				  .first_epoch = c->restart_step };
	struct buf head;
	int rc;

	buf_init(&head, LIMIT_record_bytes);
	encode_header(&head, c->first_time, &h);
	rc = im->http ? send(im, run, &head, records, err) : keep(im, run, path, &head, records, err);
	buf_done(&head);
	return rc;
}

/* Files of one folder come one after the other, by name, which begins with the time: each that begins at a later step
 * than the first is a restart. */
static void place(struct import *im, const char *path, const struct contents *c)
{
	const char *slash = strrchr(path, '/');
	char folder[4096];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 0, path);
	if (strcmp(folder, im->folder) != 0 || !im->runs) {
		snprintf(im->folder, sizeof(im->folder), "%s", folder);
		im->segment = 0;
		im->runs++;
	} else if (c->restart_step > 0) {
		im->segment++;
	}
}

static int import_one(void *user, const char *path, struct err *err)
{
	struct import *im = user;
	struct contents c = { 0 };
	struct import_run run;
	struct buf records;
	char whole[4096];
	int rc;

	snprintf(whole, sizeof(whole), "%s/%s", im->from, path);
	buf_init(&records, FILE_MAX);
	rc = read_whole(whole, &records, err);
	if (!rc) {
		keep_whole(im, &records);
		look_into(im, &records, &c);
	}
	im->ours += c.ours;
	im->damaged += !rc && !c.records;
	if (!rc && c.records && !c.ours) {
		name_run(im, path, &run);
		place(im, path, &c);
		rc = deliver(im, &run, path, &records, &c, err);
		im->files++;
		im->scalars += c.scalars;
	}
	buf_done(&records);
	return rc;
}

static void say_left_out(const struct import *im)
{
	size_t n = map_count(im->left_out);

	for (size_t i = 0; i < n && i < LEFT_SHOWN; i++) {
		size_t len;

		printf("%s %llu times %s\n", im->http ? "left out:" : "kept in the file, left out of the run:",
		       (unsigned long long)*(uint64_t *)map_at(im->left_out, i),
		       (const char *)map_key_at(im->left_out, i, &len));
	}
	if (n > LEFT_SHOWN)
		printf("… and %zu more tags that are no scalars\n", n - LEFT_SHOWN);
}

static int import_all(struct import *im, struct err *err)
{
	char a[64], b[64], c[64];
	struct stat st;
	int rc;

	if (stat(im->from, &st))
		return err_set_errno(err, errno, "cannot read %s", im->from);
	rc = journals_each(im->from, import_one, im, err);
	if (rc)
		return rc;
	if (!im->files && !im->ours && !im->damaged)
		return err_set(err, ERR_USAGE, "%s holds no event files (events.out.tfevents.…)", im->from);
	printf("%s, %s, %s\n", cli_count(a, im->runs, "run"), cli_count(b, im->files, "file"),
	       cli_count(c, im->scalars, "scalar"));
	say_left_out(im);
	if (im->ours)
		printf("left out: %s of dptrack; `dptrack sync` sends them\n", cli_count(a, im->ours, "journal"));
	if (im->malformed)
		printf("left out: %s damaged, malformed inside, or not an event with a time\n",
		       cli_count(a, im->malformed, "record"));
	if (im->cut)
		printf("left out: the end of %s, behind a damaged length\n", cli_count(a, im->cut, "file"));
	if (im->damaged)
		printf("left out: %s without a whole record\n", cli_count(a, im->damaged, "file"));
	return im->files ? 0
			 : err_set(err, ERR_USAGE, "%s holds no event files (events.out.tfevents.…) of other programs",
				   im->from);
}

static int open_target(struct import *im, const char *url, struct err *err)
{
	im->left_out = map_new(sizeof(uint64_t));
	if (!im->left_out)
		return err_set(err, ERR_NOMEM, "out of memory");
	if (!url)
		return 0;
	im->spool_fd = memfd_create("journal", MFD_CLOEXEC);
	if (im->spool_fd < 0)
		return err_set_errno(err, errno, "cannot make a file in memory");
	return journals_server(&im->http, url, err);
}

static int import_run(int argc, char **argv, struct err *err)
{
	struct import im = { .into = "runs", .spool_fd = -1 };
	const char *url = NULL;
	bool help = false;
	const struct flag table[] = {
		{ "logdir", FLAG_PATH, "DIR", "folder of runs that they are put into (default: runs)", &im.into, 0, 0 },
		{ "url", FLAG_TEXT, "URL", "send them to the server there instead", &url, 0, 0 },
		{ "experiment", FLAG_TEXT, "NAME", "of all of them (default: first part of a run's path)",
		  &im.experiment, 0, 0 },
		{ "help", FLAG_SWITCH, "", "this text", &help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_import, .table = table, .help = &help, .words_max = 1 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "import: which folder? dptrack import DIR");
	if (!rc)
		rc = open_target(&im, url, err);
	if (!rc) {
		im.from = line.words.items[0];
		rc = import_all(&im, err);
	}
	if (im.spool_fd >= 0)
		close(im.spool_fd);
	map_free(im.left_out);
	http_close(im.http);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_import = {
	.name = "import", .group = "Bring in", .words = "DIR",
	.summary = "make runs of a folder of TensorBoard event files", .run = import_run
};

/* import_events.c: a folder of event files that other programs wrote becomes runs. A file's records are kept byte for byte
 * behind a first record that names the run, so the result is a journal like any other: TensorBoard reads it, and a
 * repeat changes nothing. */
#include "web/cli/import/import_events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/sha256.h"
#include "tracker/event/event.h"
#include "tracker/event/key.h"
#include "tracker/event/limits.h"
#include "tracker/event/record.h"
#include "web/cli/cli.h"
#include "web/cli/journals.h"
#include "web/store/follow/tb_hparams.h"

#define FILE_MAX ((size_t)8 << 30)

struct import {
	struct importer *b;
	const char *from;
	uint64_t files, scalars, media, ours, damaged, malformed, cut, runs;
	/* of the folder that is read now */
	char folder[4096];
	int segment;
};

/* The run that a folder of event files becomes: experiment is the first component of its path, the name is the rest. */
struct import_run {
	char id[33], writer[33];
	char experiment[512], name[512];
	bool beside; /* the file tells of the run of the folder above its own */
};

/* Where the folder ends that is the run; NULL: it is the one that is imported. */
static const char *folder_end(const char *path, bool beside)
{
	const char *slash = strrchr(path, '/');

	return slash && beside ? memrchr(path, '/', (size_t)(slash - path)) : slash;
}

static void name_run(const struct import *im, const char *path, struct import_run *ret)
{
	const char *slash = folder_end(path, ret->beside), *first = strchr(path, '/');
	size_t folder = slash ? (size_t)(slash - path) : 0;
	char key[8192], hex[65];

	if (!folder)
		snprintf(ret->name, sizeof(ret->name), "imported");
	else if (im->b->target->experiment || first == slash)
		snprintf(ret->name, sizeof(ret->name), "%.*s", (int)folder, path);
	else
		snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(slash - first - 1), first + 1);
	if (im->b->target->experiment)
		snprintf(ret->experiment, sizeof(ret->experiment), "%s", im->b->target->experiment);
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
	uint64_t scalars, media, records;
	bool ours;
};

/* What runs do not keep as it is: by the name of its plugin, or why; and its tag. */
static void count_other(struct import *im, struct event_text what, struct event_text tag)
{
	importer_leave_out(im->b, "%.*s %.*s", (int)(what.len < 100 ? what.len : 100), what.at,
			(int)(tag.len < 250 ? tag.len : 250), tag.at);
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
	else if (item->kind == EVENT_TEXT || (item->kind == EVENT_OTHER && media_content(item->raw, NULL)))
		c->media++;
	else if (item->kind == EVENT_OTHER)
		count_other(im, item->text, item->key);
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

static int deliver(struct import *im, const struct import_run *run, const char *path, const struct buf *records,
		   const struct contents *c, struct err *err)
{
	struct event_header h = { .format = 1,
				  .run_id = text_of(run->id),
				  .writer_id = text_of(run->writer),
				  .world_size = 1,
				  .experiment = text_of(run->experiment),
				  .run_name = text_of(run->name),
				  .segment = run->beside ? 0 : im->segment,
				  .ordered = true,
				  .first_step = c->restart_step,
				  .first_epoch = c->restart_step };
	const char *slash = strrchr(path, '/');
	struct importer_journal j = { .run = run->id, .writer = run->writer, .experiment = run->experiment,
				   .name = run->name, .file = slash ? slash + 1 : path };
	struct buf head;
	int rc;

	buf_init(&head, LIMIT_record_bytes);
	encode_header(&head, c->first_time, &h);
	rc = importer_deliver(im->b, &j, &head, records, err);
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
		run.beside = tb_hparams_find(im->from, path, false) == TB_HPARAMS_YES;
		name_run(im, path, &run);
		if (!run.beside)
			place(im, path, &c);
		rc = deliver(im, &run, path, &records, &c, err);
		im->files++;
		im->scalars += c.scalars;
		im->media += c.media;
	}
	buf_done(&records);
	return rc;
}

static void say_damage(const struct import *im)
{
	char a[64];

	if (im->ours)
		printf("left out: %s of dptrack; `dptrack sync` sends them\n", cli_count(a, im->ours, "journal"));
	if (im->malformed)
		printf("left out: %s damaged, malformed inside, or not an event with a time\n",
		       cli_count(a, im->malformed, "record"));
	if (im->cut)
		printf("left out: the end of %s, behind a damaged length\n", cli_count(a, im->cut, "file"));
	if (im->damaged)
		printf("left out: %s without a whole record\n", cli_count(a, im->damaged, "file"));
}

int events_import(struct importer *b, const char *from, struct err *err)
{
	struct import im = { .b = b, .from = from };
	char x[64], y[64], z[64];
	struct stat st;
	int rc;

	if (stat(from, &st))
		return err_set_errno(err, errno, "cannot read %s", from);
	rc = journals_each(from, import_one, &im, err);
	b->runs += im.runs;
	rc = rc ? rc : importer_finish(b, err);
	if (rc)
		return rc;
	if (!im.files && !im.ours && !im.damaged)
		return err_set(err, ERR_USAGE, "%s holds no event files (events.out.tfevents.…)", from);
	printf("%s, %s, %s", cli_count(x, im.runs, "run"), cli_count(y, im.files, "file"),
	       cli_count(z, im.scalars, "scalar"));
	if (im.media)
		printf(", %" PRIu64 " pictures, histograms, texts and sounds", im.media);
	printf("\n");
	importer_say_left_out(b, b->http ? "left out:" : "kept in the file, left out of the run:");
	say_damage(&im);
	return im.files ? 0
			: err_set(err, ERR_USAGE, "%s holds no event files (events.out.tfevents.…) of other programs",
				  from);
}

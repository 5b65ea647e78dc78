/* SPDX-License-Identifier: Apache-2.0 */
/* import_events.c: imports a folder of event files of other programs as runs. The records of a file are copied byte for
 * byte after a first record that identifies the run. The result is an ordinary journal, so TensorBoard reads it and a
 * repeated import changes nothing. */
#include "tracker/base/utf8.h"
#include "web/cli/import/importer.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/sha256.h"
#include "tracker/event/record.h"
#include "web/cli/journals.h"
#include "web/store/follow/origin.h"

#define FILE_MAX ((size_t)8 << 30)

/* A run that the input contains. */
struct known_run {
	bool asked, here; /* here: the target has it */
};

/* Files that are skipped, in whole or in part. */
struct left_files {
	uint64_t count;
	char first[600];
};

struct events_import_state {
	struct importer *b;
	const char *from;
	struct map *writers; /* id -> struct known_writer */
	struct source *source; /* of the target; NULL: not asked yet */
	struct map *known;     /* id -> struct known_run, of the input */
	uint64_t files, scalars, media, ours, malformed, runs_here, files_here;
	struct left_files damaged, cut, empty, unreadable;
	/* of the current folder */
	char folder[4096];
	int segment;
};

/* The run of a folder of event files: the experiment is the first component of its path, the name is the rest. */
struct event_run {
	const char *path; /* of the file, below the imported folder */
	char id[33], writer[33];
	char experiment[512], name[512];
	bool in_parent; /* the file belongs to the run of the parent folder: TensorBoard's hparams */
	struct event_header part; /* without the texts */
};

/* The first file of a writer. */
struct known_writer {
	char path[4096];
};

static void leave_file_out(struct left_files *l, const char *path)
{
	if (!l->count++)
		utf8_escape(l->first, sizeof(l->first), path);
}

/* Compares the records of a file with those of another one with the same first records: one begins with the other. */
static bool is_same_content(const struct events_import_state *im, const char *other, const struct buf *records)
{
	char whole[8192];
	struct buf have;
	bool same;

	buf_init(&have, FILE_MAX);
	same = file_join(whole, sizeof(whole), im->from, other) && !file_load(&have, whole, NULL) &&
	       !memcmp(have.data, records->data, have.len < records->len ? have.len : records->len);
	buf_done(&have);
	return same;
}

/* End of the path of the run's folder; NULL: the run is the imported folder itself. */
static const char *find_run_folder_end(const char *path, bool in_parent)
{
	const char *slash = strrchr(path, '/');

	return slash && in_parent ? memrchr(path, '/', (size_t)(slash - path)) : slash;
}

/* Another file with the same first records has another writer, unless one begins with the other. */
static void derive_event_writer(const struct events_import_state *im, const char *path, const struct buf *records,
				struct event_run *ret)
{
	char content[ORIGIN_ID_BYTES];
	struct known_writer *first;

	origin_content(content, records->data, records->len);
	importer_id(ret->writer, "%s/%s", ret->id, content);
	first = map_put(im->writers, ret->writer, strlen(ret->writer));
	if (first && !first->path[0])
		snprintf(first->path, sizeof(first->path), "%s", path);
	else if (first && !is_same_content(im, first->path, records))
		importer_id(ret->writer, "%s/%s/%s", ret->id, content, path);
}

/* Derives experiment, name and id of a run from its path, and the writer from the first records, so that a repeated
 * import finds the same run, and the same file under another name. */
static void derive_event_run(const struct events_import_state *im, const char *path, const struct buf *records,
			     struct event_run *ret)
{
	const char *slash = find_run_folder_end(path, ret->in_parent), *first = strchr(path, '/');
	size_t folder = slash ? (size_t)(slash - path) : 0;
	char key[8192], hex[65];

	ret->path = path;
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
	derive_event_writer(im, path, records, ret);
}

/* Content of a file, supported and unsupported. */
struct event_file_content {
	int64_t restart_step; /* first step of a restart as its writer reports it; 0: from the beginning */
	double first_time;
	uint64_t scalars, media, records;
	bool ours, version; /* version: has the version of event files, as the first record of most writers */
	json_t *exported; /* EVENT_EXPORT_TAG of a file of `dptrack export --events`, or NULL */
};

/* Counts an unsupported item by the name of its plugin, or the reason, and its tag. */
static void count_unsupported_item(struct events_import_state *im, struct event_text what, struct event_text tag)
{
	importer_leave_out(im->b, "%.*s %.*s", (int)(what.len < 100 ? what.len : 100), what.at,
			   (int)(tag.len < 250 ? tag.len : 250), tag.at);
}

static struct event_text event_text_of(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

static void scan_event_item(struct events_import_state *im, struct event_file_content *c, const struct event *ev,
			    const struct event_item *item)
{
	const char *wrong = item->kind == EVENT_SCALAR ? key_check(item->key.at, item->key.len) : NULL;

	c->ours = c->ours || item->kind == EVENT_HEADER;
	c->version = c->version || item->kind == EVENT_FILE_VERSION;
	if (item->kind == EVENT_TAG && event_text_equal(item->key, EVENT_EXPORT_TAG) && !c->exported)
		c->exported = json_loadb(item->text.at, item->text.len, 0, NULL);
	c->scalars += item->kind == EVENT_SCALAR && !wrong;
	if (wrong)
		count_unsupported_item(im, event_text_of("scalars whose tag is not a valid key:"), item->key);
	else if (item->kind == EVENT_TEXT || (item->kind == EVENT_OTHER && media_content(item->raw, NULL)))
		c->media++;
	else if (item->kind == EVENT_OTHER)
		count_unsupported_item(im, item->text, item->key);
	if (item->kind == EVENT_SESSION && item->integer == 1 && !c->restart_step && !c->scalars)
		c->restart_step = ev->step;
}

static void scan_event_file(struct events_import_state *im, const struct buf *bytes, struct event_file_content *c)
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
			scan_event_item(im, c, &ev, &item);
		im->malformed += rc < 0;
	}
}

/* Removes damaged records, and everything after a damaged length, where the next record cannot be found. */
static void remove_damaged_records(struct events_import_state *im, const char *path, struct buf *bytes)
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
	if (state == RECORD_BAD_LENGTH && kept)
		leave_file_out(&im->cut, path);
	bytes->len = kept;
}

static int read_event_file(const char *path, struct buf *to, struct err *err)
{
	struct err failure;
	int rc = file_load(to, path, &failure);

	if (!rc)
		return 0;
	return errno == EFBIG ? err_set(err, ERR_NOMEM, "%s is too large to import", path)
			      : err_set_errno(err, errno, "cannot read %s", path);
}

/* Delivers the records of a file after a header that identifies its run. */
static int deliver_event_run(struct events_import_state *im, const struct event_run *run, const struct buf *records,
			     const struct event_file_content *c, struct err *err)
{
	struct event_header h = run->part;
	const char *slash = strrchr(run->path, '/');
	char file[600];
	struct importer_journal j = { .run = run->id, .writer = run->writer, .experiment = run->experiment,
				   .name = run->name, .file = file };
	struct buf head;
	int rc;

	snprintf(file, sizeof(file), "%.500s", slash ? slash + 1 : run->path);
	if (h.rank >= 0) /* the files of ranks have the names of the run's */
		snprintf(file, sizeof(file), "rank-%d.%.500s", h.rank, slash ? slash + 1 : run->path);
	h.format = 1;
	h.run_id = event_text_of(run->id);
	h.writer_id = event_text_of(run->writer);
	h.experiment = event_text_of(run->experiment);
	h.run_name = event_text_of(run->name);
	h.rank = h.rank > 0 ? h.rank : 0;
	h.ordered = true;
	buf_init(&head, LIMIT_record_bytes);
	encode_header(&head, c->first_time, &h);
	rc = importer_deliver(im->b, &j, &head, records, err);
	buf_done(&head);
	return rc;
}

/* Files of a folder come in the order of their names, which begin with a time. A file that starts at a later step than
 * the first is a restart. */
static void assign_segment(struct events_import_state *im, const char *path, const struct event_file_content *c)
{
	const char *slash = strrchr(path, '/');
	char folder[4096];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 0, path);
	if (strcmp(folder, im->folder) != 0) {
		snprintf(im->folder, sizeof(im->folder), "%s", folder);
		im->segment = 0;
	} else if (c->restart_step > 0) {
		im->segment++;
	}
}

/* Returns 1 if the target has the run, but not from this file: it was not imported from it. */
static int find_run_in_target(struct events_import_state *im, const char *run, const char *writer, struct err *err)
{
	const struct importer_target *to = im->b->target;
	struct err why = ERR_INIT;
	json_t *root = NULL;
	char target[128];
	int rc = 0;

	if (!to->url && access(to->into, F_OK))
		return 0;
	if (!im->source)
		rc = source_open(&im->source, &(struct source_opts){ to->url ? NULL : to->into, to->url, NULL }, err);
	if (rc)
		return rc;
	snprintf(target, sizeof(target), "/api/v1/runs/%s/journal?writer=%s", run, writer);
	rc = cli_get_json(im->source, target, &root, &why);
	if (!rc)
		rc = !json_integer_value(json_object_get(root, "durable"));
	else if (rc == ERR_NOENT || rc == ERR_GONE)
		rc = rc == ERR_GONE;
	else
		err_set(err, rc, "%s", why.text);
	json_decref(root);
	return rc;
}

/* Returns 1 for an exported file whose run the target has. The first file of a run decides for all. */
static int find_exported_run(struct events_import_state *im, const struct event_run *run, struct err *err)
{
	struct known_run *r = map_put(im->known, run->id, 32);
	int rc = 0;

	if (!r)
		return err_nomem(err, NULL);
	if (!r->asked) {
		rc = find_run_in_target(im, run->id, run->writer, err);
		im->runs_here += rc > 0;
	}
	r->asked = true;
	r->here = r->here || rc > 0;
	im->files_here += r->here;
	return rc < 0 ? rc : r->here;
}

static int exported_number(const struct event_file_content *c, const char *member)
{
	return (int)json_integer_value(json_object_get(c->exported, member));
}

/* Fills in what the tag of an exported file says. With an experiment given, the run is a copy with an id of its own. */
static void derive_exported_run(const struct events_import_state *im, const struct event_file_content *c,
				const struct buf *records, struct event_run *run)
{
	char digest[65];

	run->part = (struct event_header){
		.rank = exported_number(c, "rank"),
		.world_size = exported_number(c, "world_size"),
		.segment = exported_number(c, "segment"),
		.first_step = json_integer_value(json_object_get(c->exported, "first_step")),
		.first_epoch = json_integer_value(json_object_get(c->exported, "first_epoch")),
	};
	snprintf(run->name, sizeof(run->name), "%s", cli_text(c->exported, "name"));
	snprintf(run->experiment, sizeof(run->experiment), "%s", cli_text(c->exported, "experiment"));
	snprintf(run->id, sizeof(run->id), "%s", cli_text(c->exported, "run"));
	if (im->b->target->experiment) {
		snprintf(run->experiment, sizeof(run->experiment), "%s", im->b->target->experiment);
		importer_id(run->id, "%s/%s", run->experiment, cli_text(c->exported, "run"));
	}
	sha256_hex(records->data, records->len, digest);
	importer_id(run->writer, "%s/%s", run->id, digest);
}

/* Finds out which run a file is, and delivers its records. */
static int import_event_records(struct events_import_state *im, const char *path, const struct buf *records,
				const struct event_file_content *c, struct err *err)
{
	struct event_run run = { .path = path };
	int rc;

	if (c->exported) {
		derive_exported_run(im, c, records, &run);
		rc = find_exported_run(im, &run, err);
		if (rc)
			return rc < 0 ? rc : 0;
	} else {
		run.in_parent = tb_hparams_find(im->from, path, false) == TB_HPARAMS_YES;
		derive_event_run(im, path, records, &run);
		if (!run.in_parent)
			assign_segment(im, path, c);
		if (!map_put(im->known, run.id, 32))
			return err_nomem(err, NULL);
		run.part = (struct event_header){ .rank = EVENT_RANK_RUN, .world_size = 1,
						  .segment = run.in_parent ? 0 : im->segment,
						  .first_step = c->restart_step, .first_epoch = c->restart_step };
	}
	im->files++;
	im->scalars += c->scalars;
	im->media += c->media;
	return deliver_event_run(im, &run, records, c, err);
}

/* Reads, checks and delivers one event file. */
static int import_event_file(void *user, const char *path, struct err *err)
{
	struct events_import_state *im = user;
	struct event_file_content c = { 0 };
	struct buf records;
	struct err why = ERR_INIT;
	char whole[4096];
	int rc;

	snprintf(whole, sizeof(whole), "%s/%s", im->from, path);
	if (!importer_allows(im->b, whole))
		return 0;
	buf_init(&records, FILE_MAX);
	rc = read_event_file(whole, &records, &why);
	if (rc) {
		leave_file_out(&im->unreadable, why.text);
		rc = rc == ERR_NOMEM ? err_set(err, rc, "%s", why.text) : 0;
		buf_done(&records);
		return rc;
	}
	remove_damaged_records(im, path, &records);
	scan_event_file(im, &records, &c);
	im->ours += c.ours;
	if (!c.records)
		leave_file_out(&im->damaged, path);
	else if (c.records == 1 && c.version)
		leave_file_out(&im->empty, path);
	else if (!c.ours)
		rc = import_event_records(im, path, &records, &c, err);
	json_decref(c.exported);
	buf_done(&records);
	return rc;
}

static void print_left_files(const struct left_files *l, const char *before, const char *after)
{
	char f[64];

	if (l->count)
		printf("skipped: %s%s%s (%s)\n", before, cli_count(f, l->count, "file"), after, l->first);
}

static void print_damage(const struct events_import_state *im)
{
	char a[64], f[64];

	if (im->files_here)
		printf("skipped: %s (%s) that the target has already, or deleted; use --experiment to copy them\n",
		       cli_count(a, im->runs_here, "exported run"), cli_count(f, im->files_here, "file"));
	if (im->ours)
		printf("skipped: %s of dptrack; use `dptrack sync` to send them\n", cli_count(a, im->ours, "journal"));
	if (im->malformed)
		printf("skipped: %s damaged, malformed inside, or not an event with a time\n",
		       cli_count(a, im->malformed, "record"));
	print_left_files(&im->cut, "the end of ", ", after a damaged length");
	print_left_files(&im->damaged, "", " without a complete record");
	print_left_files(&im->empty, "", " without data");
	print_left_files(&im->unreadable, "", " that cannot be read");
}

int events_import(struct importer *b, const char *from, struct err *err)
{
	struct events_import_state im = { .b = b, .from = from, .folder = "/" };
	char x[64], y[64], z[64];
	struct stat st;
	uint64_t runs;
	int rc;

	if (stat(from, &st))
		return err_set_errno(err, errno, "cannot read %s", from);
	im.writers = map_new(sizeof(struct known_writer));
	im.known = map_new(sizeof(struct known_run));
	rc = im.writers && im.known ? journals_each(from, import_event_file, &im, err) : err_nomem(err, NULL);
	runs = im.known ? map_count(im.known) - im.runs_here : 0;
	map_free(im.writers);
	map_free(im.known);
	source_close(im.source);
	b->runs += runs;
	rc = rc ? rc : importer_finish(b, err);
	if (rc)
		return rc;
	if (!im.files && !im.ours && !im.damaged.count && !im.unreadable.count && !im.files_here)
		return err_set(err, ERR_USAGE, "%s contains no event files (events.out.tfevents.…)", from);
	printf("%s, %s, %s", cli_count(x, runs, "run"), cli_count(y, im.files, "file"),
	       cli_count(z, im.scalars, "scalar"));
	if (im.media)
		printf(", %" PRIu64 " images, histograms, texts and audio clips", im.media);
	printf("\n");
	importer_say_left_out(b, b->http ? "skipped:" : "kept in the file, skipped in the run:");
	print_damage(&im);
	return im.files || im.files_here ? 0
			: err_set(err, ERR_USAGE,
				  "%s contains no event files (events.out.tfevents.…) of other programs with data",
				  from);
}

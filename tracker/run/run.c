/* run.c: the public functions of dptrack.h. Validates and copies what comes in; the work is done by the writer thread
 * and the uplink. */
#include "tracker/dptrack.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tracker/base/arena.h"
#include "tracker/base/clock.h"
#include "tracker/base/err.h"
#include "tracker/event/key.h"
#include "tracker/event/limits.h"
#include "tracker/run/folder.h"
#include "tracker/run/journal.h"
#include "tracker/run/keys.h"
#include "tracker/run/lanes.h"
#include "tracker/run/names.h"
#include "tracker/run/records.h"
#include "tracker/run/warn.h"
#include "tracker/run/writer.h"
#include "tracker/sink/uplink.h"

#define CLOSE_WAIT_S 10.0
#define PAGE_BYTES 4096u
#define SHOWN_BYTES 96u /* of a bad key in a warning */

struct dptrack_run {
	/* 1 in the process that opened the run; the page reads as 0 in a child of fork(). */
	_Atomic(int) *here;
	struct arena *arena;
	struct folder folder;
	char id[NAMES_ID_BYTES];
	int rank;   /* EVENT_RANK_LAUNCHER for the launcher */
	int series; /* rank of the series that dptrack_log writes */
	int segment;
	double close_wait_s;
	struct keys *keys;
	struct lanes *lanes;
	struct records *records;
	struct warn *warn;
	struct journal *journal;
	struct uplink *uplink;
	struct writer *writer;
	_Atomic(uint64_t) dropped;
};

static int fail(struct dptrack_error *error, const struct err *err)
{
	if (error) {
		error->code = err->code;
		snprintf(error->text, sizeof(error->text), "%s", err->text);
	}
	return err->code;
}

static bool usable(const struct dptrack_run *run)
{
	return run && atomic_load_explicit(run->here, memory_order_relaxed);
}

/* ---- open ---- */

static int check_name(const char *what, const char *name, struct err *err)
{
	size_t chars = 0;

	if (!name)
		return 0;
	if (!key_utf8_valid(name, strlen(name)))
		return err_set(err, ERR_USAGE, "%s is not valid UTF-8", what);
	for (const char *p = name; *p; p++) {
		chars += ((unsigned char)*p & 0xc0) != 0x80;
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(err, ERR_USAGE, "%s holds a control character", what);
	}
	if (!chars || chars > LIMIT_name_chars)
		return err_set(err, ERR_USAGE, "%s has %zu characters; 1 to %d are allowed", what, chars,
			       LIMIT_name_chars);
	return 0;
}

static int check_opts(const struct dptrack_run_opts *o, struct err *err)
{
	int rc = check_name("the experiment's name", o->experiment, err);

	if (!rc)
		rc = check_name("the run's name", o->run_name, err);
	if (rc)
		return rc;
	if (o->run_id && !names_is_id(o->run_id))
		return err_set(err, ERR_USAGE, "run id \"%.64s\" is not 32 lower-case hex digits", o->run_id);
	if (o->reopen && !o->run_id)
		return err_set(err, ERR_USAGE, "reopening a run needs its run_id");
	if (o->rank < 0 || o->rank > LIMIT_rank || o->world_size < 0 || o->world_size > LIMIT_rank + 1)
		return err_set(err, ERR_USAGE, "rank %d of %d is out of range", o->rank, o->world_size);
	if (o->segment < 0 || o->segment > LIMIT_segment)
		return err_set(err, ERR_USAGE, "segment %d is out of range", o->segment);
	return 0;
}

static int open_here_page(struct dptrack_run *run, struct err *err)
{
	void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return err_set(err, ERR_NOMEM, "out of memory");
	(void)madvise(page, PAGE_BYTES, MADV_WIPEONFORK); /* before Linux 4.14 a child has to stay away by itself */
	run->here = page;
	atomic_store(run->here, 1);
	return 0;
}

static int open_folder(struct dptrack_run *run, const struct dptrack_run_opts *o, struct err *err)
{
	char made[NAMES_COMPONENT_BYTES];
	int rc;

	if (o->run_id)
		memcpy(run->id, o->run_id, NAMES_ID_BYTES);
	else if (names_draw_id(run->id))
		return err_set(err, ERR_IO, "the system gives no random numbers");
	names_from_id(made, run->id);
	rc = folder_open(&run->folder, run->arena,
			 &(struct folder_opts){ .runs_dir = o->runs_dir ? o->runs_dir : "runs",
						.experiment = o->experiment ? o->experiment : "default",
						.run_name = o->run_name ? o->run_name : made,
						.run_id = run->id,
						.must_exist = o->reopen || (o->run_id && o->segment > 0) },
			 err);
	if (rc)
		return rc;
	run->segment = o->segment;
	if (o->reopen && !o->segment)
		run->segment = run->folder.newest_segment + 1;
	return 0;
}

static int open_parts(struct dptrack_run *run, const struct dptrack_run_opts *o, struct err *err)
{
	run->arena = arena_new();
	run->keys = keys_new();
	run->lanes = lanes_new(LIMIT_queue_points);
	run->warn = warn_new(o->warn, o->warn_user);
	run->records = records_new(run->rank == 0);
	if (!run->arena || !run->keys || !run->lanes || !run->warn || !run->records)
		return err_set(err, ERR_NOMEM, "out of memory");
	return open_here_page(run, err);
}

static int open_journal(struct dptrack_run *run, const struct dptrack_run_opts *o, struct err *err)
{
	struct journal_opts jo = {
		.dir = run->folder.dir,
		.header = {
			.run_id = { run->id, strlen(run->id) },
			.rank = run->rank,
			.world_size = o->world_size ? o->world_size : 1,
			.experiment = { run->folder.experiment, strlen(run->folder.experiment) },
			.run_name = { run->folder.run_name, strlen(run->folder.run_name) },
			.segment = run->segment,
			.first_step = o->first_step,
			.first_epoch = o->first_epoch,
		},
	};

	return journal_open(&run->journal, &jo, err);
}

static void server_notice(void *user, const char *text)
{
	struct dptrack_run *run = user;

	warn_post(run->warn, WARN_SERVER, "%s", text);
}

/* A server that cannot be used must not keep anybody from training: it costs a warning. */
static void open_uplink(struct dptrack_run *run, const struct dptrack_run_opts *o)
{
	const char *url = o->url ? o->url : getenv("DPTRACK_URL");
	struct err err = ERR_INIT;

	if (!url || !*url)
		return;
	if (uplink_start(&run->uplink,
			 &(struct uplink_opts){ .url = url,
						.token = o->token ? o->token : getenv("DPTRACK_TOKEN"),
						.run_id = run->id,
						.notice = server_notice,
						.user = run },
			 &err))
		warn_post(run->warn, WARN_SERVER, "nothing is sent to a server: %s", err.text);
	else
		uplink_advance(run->uplink, journal_path(run->journal), journal_writer_id(run->journal),
			       journal_bytes(run->journal));
}

static void adopt(void *user, const char *path, const char *writer_id, uint64_t bytes)
{
	uplink_adopt(((struct dptrack_run *)user)->uplink, path, writer_id, bytes);
}

/* What processes that are gone could not send any more: those of earlier segments when a run is reopened, those that
 * died when the launcher ends. */
static void send_for_others(struct dptrack_run *run)
{
	if (run->uplink)
		folder_journals(run->folder.dir, run->id, adopt, run);
}

static void run_free(struct dptrack_run *run)
{
	if (!run)
		return;
	journal_close(run->journal);
	records_free(run->records);
	warn_free(run->warn);
	lanes_free(run->lanes);
	keys_free(run->keys);
	arena_free(run->arena);
	if (run->here)
		munmap((void *)run->here, PAGE_BYTES);
	free(run);
}

int dptrack_run_open(struct dptrack_run **ret, const struct dptrack_run_opts *opts, struct dptrack_error *error)
{
	static const struct dptrack_run_opts defaults;
	const struct dptrack_run_opts *o = opts ? opts : &defaults;
	struct dptrack_run *run = calloc(1, sizeof(*run));
	struct err err = ERR_INIT;
	int rc;

	rc = run ? check_opts(o, &err) : err_set(&err, ERR_NOMEM, "out of memory");
	if (rc)
		goto out;
	run->rank = o->role == DPTRACK_LAUNCHER ? EVENT_RANK_LAUNCHER : o->rank;
	run->series = run->rank > 0 ? run->rank : EVENT_RANK_RUN;
	run->close_wait_s = o->close_wait_s == 0 ? CLOSE_WAIT_S : o->close_wait_s;
	rc = open_parts(run, o, &err);
	if (!rc)
		rc = open_folder(run, o, &err);
	if (!rc)
		rc = open_journal(run, o, &err);
	if (rc)
		goto out;
	open_uplink(run, o);
	if (o->reopen)
		send_for_others(run);
	rc = writer_start(&run->writer,
			  &(struct writer_opts){ .journal = run->journal,
						 .lanes = run->lanes,
						 .records = run->records,
						 .warn = run->warn,
						 .uplink = run->uplink,
						 .dropped = &run->dropped,
						 .journal_rank = run->rank },
			  &err);
	if (rc && run->uplink)
		uplink_stop(run->uplink, -1);
	if (rc)
		goto out;
	*ret = run;
	run = NULL;
out:
	run_free(run);
	return rc ? fail(error, &err) : 0;
}

/* ---- find ---- */

static int find_run(struct dptrack_found *ret, const struct dptrack_run_opts *o, struct arena *arena, struct err *err)
{
	struct folder f;
	int rc = check_opts(o, err);

	if (!rc && !o->run_id && !o->run_name)
		rc = err_set(err, ERR_USAGE, "looking for a run needs its id or its name");
	if (!rc)
		rc = folder_find(&f, ret->id, arena,
				 &(struct folder_opts){ .runs_dir = o->runs_dir ? o->runs_dir : "runs",
							.experiment = o->experiment ? o->experiment : "default",
							.run_name = o->run_name,
							.run_id = o->run_id,
							.must_exist = o->run_id != NULL },
				 err);
	if (rc)
		return rc;
	if ((size_t)snprintf(ret->dir, sizeof(ret->dir), "%s", f.dir) >= sizeof(ret->dir))
		return err_set(err, ERR_USAGE, "%.100s…: path is too long", f.dir);
	ret->newest_segment = f.newest_segment;
	return 0;
}

int dptrack_find(struct dptrack_found *ret, const struct dptrack_run_opts *opts, struct dptrack_error *error)
{
	struct err err = ERR_INIT;
	struct dptrack_found found;
	struct arena *arena = arena_new();
	int rc = arena ? find_run(&found, opts, arena, &err) : err_set(&err, ERR_NOMEM, "out of memory");

	arena_free(arena);
	if (rc)
		return fail(error, &err);
	*ret = found;
	return 0;
}

/* ---- close ---- */

static int close_uplink(struct dptrack_run *run)
{
	uint64_t unsent;

	if (!run->uplink)
		return 0;
	unsent = uplink_stop(run->uplink, run->close_wait_s);
	run->uplink = NULL;
	if (!unsent)
		return 0;
	warn_post(run->warn, WARN_UNSENT,
		  "the server lacks the last %llu bytes of the run's journals; they are kept in %s",
		  (unsigned long long)unsent, run->folder.dir);
	return DPTRACK_UNSENT;
}

int dptrack_run_close(struct dptrack_run *run, enum dptrack_status status)
{
	struct err err = ERR_INIT;
	uint64_t lost = 0;
	int rc, sent;

	if (!run)
		return 0;
	if (!usable(run))
		return DPTRACK_FORKED;
	if ((unsigned)status > DPTRACK_SCHEDULED)
		status = DPTRACK_RUNNING;
	rc = writer_stop(run->writer, (enum event_status)status, &lost, &err);
	if (rc)
		warn_post(run->warn, WARN_DISK, "%s; %llu points or more were lost", err.text, (unsigned long long)lost);
	if (rc == ERR_BUSY) { /* the writer thread still uses the run: it stays */
		warn_deliver(run->warn, true);
		warn_mute(run->warn);
		return DPTRACK_IO;
	}
	if (run->rank == EVENT_RANK_LAUNCHER)
		send_for_others(run);
	sent = close_uplink(run);
	warn_deliver(run->warn, true);
	run_free(run);
	return rc ? rc : sent;
}

int dptrack_flush(struct dptrack_run *run, double wait_s)
{
	if (!usable(run))
		return DPTRACK_FORKED;
	return writer_flush(run->writer, wait_s) ? DPTRACK_IO : 0;
}

/* ---- what a run is ---- */

const char *dptrack_run_id(const struct dptrack_run *run)
{
	return run->id;
}

const char *dptrack_run_name(const struct dptrack_run *run)
{
	return run->folder.run_name;
}

const char *dptrack_run_dir(const struct dptrack_run *run)
{
	return run->folder.dir;
}

int dptrack_run_segment(const struct dptrack_run *run)
{
	return run->segment;
}

int dptrack_draw_id(char ret[33])
{
	return names_draw_id(ret);
}

uint64_t dptrack_dropped(const struct dptrack_run *run)
{
	return atomic_load(&run->dropped);
}

/* ---- points ---- */

/* The beginning of a key that may hold anything, fit for a line of text. */
static void show_key(char to[SHOWN_BYTES], const char *key)
{
	key_utf8_copy(to, SHOWN_BYTES, key ? key : "", key ? strnlen(key, 2 * SHOWN_BYTES) : 0, NULL);
	for (char *p = to; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

static int refuse_key(struct dptrack_run *run, const char *key, int rc, const char *why)
{
	char shown[SHOWN_BYTES];

	atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
	show_key(shown, key);
	if (rc == ERR_USAGE)
		warn_post(run->warn, WARN_KEY, "points of series \"%s\" are lost: the key %s", shown, why);
	else
		warn_post(run->warn, WARN_KEY, "points of series \"%s\" are lost: the run has %d series already", shown,
			  LIMIT_keys_per_run);
	return rc;
}

static int push(struct dptrack_run *run, const char *key, struct point *p)
{
	const char *why = "";
	int rc = keys_get(run->keys, key, &p->key, &why);

	if (rc)
		return refuse_key(run, key, rc, why);
	if (lanes_push(run->lanes, p))
		return 0;
	atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
	return DPTRACK_LIMIT;
}

int dptrack_log(struct dptrack_run *run, int64_t step, const char *key, double value)
{
	if (!usable(run))
		return DPTRACK_FORKED;
	return push(run, key,
		    &(struct point){ .wall_time = clock_wall_s(), .value = value, .step = step, .rank = run->series });
}

int dptrack_log_rank(struct dptrack_run *run, int rank, int64_t step, const char *key, double value)
{
	if (!usable(run))
		return DPTRACK_FORKED;
	return dptrack_log_at(run, rank, step, key, value, clock_wall_s());
}

int dptrack_log_at(struct dptrack_run *run, int rank, int64_t step, const char *key, double value, double wall_time)
{
	if (!usable(run))
		return DPTRACK_FORKED;
	if (rank < EVENT_RANK_RUN || rank > LIMIT_rank || isnan(wall_time)) {
		atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
		warn_post(run->warn, WARN_KEY, "points are lost: rank %d or their time is out of range", rank);
		return DPTRACK_USAGE;
	}
	return push(run, key,
		    &(struct point){ .wall_time = wall_time, .value = value, .step = step, .rank = rank });
}

/* ---- everything else ---- */

static int refuse(struct dptrack_run *run, const char *what, const char *key, int rc)
{
	if (rc == ERR_EXISTS)
		warn_post(run->warn, WARN_PARAM, "%s \"%s\" has another value already; the first one stays", what, key);
	else if (rc)
		warn_post(run->warn, WARN_PARAM, "%s \"%s\" is lost: too many are set or waiting", what, key);
	return rc;
}

static int check_key(struct dptrack_run *run, const char *what, const char *key)
{
	const char *why = key_check(key ? key : "", key ? strlen(key) : 0);
	char shown[SHOWN_BYTES];

	if (!why)
		return 0;
	show_key(shown, key);
	warn_post(run->warn, WARN_PARAM, "%s \"%s\" is lost: the key %s", what, shown, why);
	return DPTRACK_USAGE;
}

/* Valid UTF-8 of at most cap bytes in the caller's storage. */
static struct event_text clean(struct dptrack_run *run, const char *what, const char *value, char *to, size_t cap)
{
	bool cut;
	size_t n = key_utf8_copy(to, cap, value ? value : "", value ? strlen(value) : 0, &cut);

	if (cut)
		warn_post(run->warn, WARN_CUT, "%s is longer than %zu bytes and was cut", what, cap - 1);
	return (struct event_text){ to, n };
}

static int add_param(struct dptrack_run *run, const char *key, struct encode_param *p)
{
	int rc;

	if (!usable(run))
		return DPTRACK_FORKED;
	rc = check_key(run, "param", key);
	if (rc)
		return rc;
	p->key = (struct event_text){ key, strlen(key) };
	return refuse(run, "param", key, records_param(run->records, p));
}

static int add_text_param(struct dptrack_run *run, const char *key, const char *value, bool segment)
{
	char text[LIMIT_value_bytes + 1];
	struct encode_param p = { .type = EVENT_TYPE_TEXT, .segment = segment };

	if (!usable(run))
		return DPTRACK_FORKED;
	p.text = clean(run, "the value of a param", value, text, sizeof(text));
	return add_param(run, key, &p);
}

int dptrack_param(struct dptrack_run *run, const char *key, const char *value)
{
	return add_text_param(run, key, value, false);
}

int dptrack_segment_param(struct dptrack_run *run, const char *key, const char *value)
{
	return add_text_param(run, key, value, true);
}

int dptrack_param_f64(struct dptrack_run *run, const char *key, double value)
{
	return add_param(run, key, &(struct encode_param){ .type = EVENT_TYPE_F64, .value = value });
}

int dptrack_param_i64(struct dptrack_run *run, const char *key, int64_t value)
{
	return add_param(run, key, &(struct encode_param){ .type = EVENT_TYPE_I64, .integer = value });
}

int dptrack_param_bool(struct dptrack_run *run, const char *key, bool value)
{
	return add_param(run, key, &(struct encode_param){ .type = EVENT_TYPE_BOOL, .integer = value });
}

static int add_pair(struct dptrack_run *run, enum record_pair kind, const char *key, const char *value)
{
	const char *what = kind == RECORD_TAG ? "tag" : "environment entry";
	char text[LIMIT_value_bytes + 1];
	int rc;

	if (!usable(run))
		return DPTRACK_FORKED;
	rc = check_key(run, what, key);
	if (rc)
		return rc;
	return refuse(run, what, key,
		      records_pair(run->records, kind, (struct event_text){ key, strlen(key) },
				   clean(run, "the value of a tag", value, text, sizeof(text))));
}

int dptrack_tag(struct dptrack_run *run, const char *key, const char *value)
{
	return add_pair(run, RECORD_TAG, key, value);
}

int dptrack_environment(struct dptrack_run *run, const char *key, const char *value)
{
	return add_pair(run, RECORD_ENV, key, value);
}

int dptrack_note(struct dptrack_run *run, const char *markdown)
{
	char *text;
	int rc;

	if (!usable(run))
		return DPTRACK_FORKED;
	text = malloc(LIMIT_note_bytes + 1);
	if (!text)
		return DPTRACK_NOMEM;
	rc = records_note(run->records, clean(run, "the note", markdown, text, LIMIT_note_bytes + 1));
	free(text);
	return refuse(run, "note", "", rc);
}

int dptrack_set_status(struct dptrack_run *run, enum dptrack_status status, const char *reason)
{
	char text[LIMIT_reason_bytes + 1];

	if (!usable(run))
		return DPTRACK_FORKED;
	if ((unsigned)status > DPTRACK_SCHEDULED)
		return DPTRACK_USAGE;
	return refuse(run, "status", "",
		      records_status(run->records, (enum event_status)status,
				     clean(run, "the reason of a status", reason, text, sizeof(text))));
}

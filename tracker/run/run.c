/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: opens and closes a run: creates the parts, connects them and ends them in order. Also finds a run to reopen.
 * The writer thread and the journal uploader do the work. Independent of what is logged. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/run_folders.h"
#include "tracker/base/utf8.h"
#include "tracker/run/run_inside.h"
#include "tracker/sink/http_client.h"

#define CLOSE_WAIT_S 10.0
#define PAGE_BYTES 4096u
#define SYSTEM_LEAST_S 0.1

/* ---- options ---- */

static int check_display_name(const char *what, const char *name, struct err *err)
{
	size_t chars;

	if (!name)
		return 0;
	if (!utf8_valid(name, strlen(name)))
		return err_set(err, ERR_USAGE, "%s is not valid UTF-8", what);
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(err, ERR_USAGE, "%s contains a control character", what);
	chars = utf8_chars(name);
	if (!chars || chars > LIMIT_name_chars)
		return err_set(err, ERR_USAGE, "%s has %zu characters; 1 to %d are allowed", what, chars,
			       LIMIT_name_chars);
	return 0;
}

/* Names are text without control characters; numbers are in the range of a journal. 0 or ERR_USAGE. */
static int check_run_opts(const struct dptrack_run_opts *o, struct err *err)
{
	int rc = check_display_name("the experiment's name", o->experiment, err);

	if (!rc)
		rc = check_display_name("the run's name", o->run_name, err);
	if (rc)
		return rc;
	if (o->run_id && !names_is_id(o->run_id))
		return err_set(err, ERR_USAGE, "run id \"%.64s\" is not 32 lower-case hex digits", o->run_id);
	if (o->reopen && !o->run_id)
		return err_set(err, ERR_USAGE, "run_id is required to reopen a run");
	if (o->rank < 0 || o->rank > LIMIT_rank || o->world_size < 0 || o->world_size > LIMIT_rank + 1)
		return err_set(err, ERR_USAGE, "rank %d of %d is out of range", o->rank, o->world_size);
	if (o->segment < 0 || o->segment > LIMIT_segment)
		return err_set(err, ERR_USAGE, "segment %d is out of range", o->segment);
	return 0;
}

static const char *choose_experiment(const struct dptrack_run_opts *o)
{
	return o->experiment ? o->experiment : "default";
}

static int copy_error(struct dptrack_error *error, const struct err *err)
{
	if (error) {
		error->code = err->code;
		snprintf(error->text, sizeof(error->text), "%s", err->text);
	}
	return err->code;
}

/* ---- open ---- */

static int open_fork_page(struct dptrack_run *run, struct err *err)
{
	void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return err_nomem(err, NULL);
	(void)madvise(page, PAGE_BYTES, MADV_WIPEONFORK); /* before Linux 4.14 a child is not detected */
	run->is_owner = page;
	atomic_store(run->is_owner, 1);
	return 0;
}

/* Finds or creates the run's folder and chooses the id and the segment. */
static int open_run_folder(struct dptrack_run *run, const struct dptrack_run_opts *o, struct err *err)
{
	char made[FILE_NAME_BYTES];
	int rc;

	if (o->run_id)
		memcpy(run->id, o->run_id, NAMES_ID_BYTES);
	else if (names_draw_id(run->id))
		return err_set(err, ERR_IO, "cannot get random bytes");
	names_from_id(made, run->id);
	rc = run_folder_open(&run->folder, run->arena,
			     &(struct run_folder_opts){ .runs_dir = run_folders_dir(o->runs_dir),
							.experiment = choose_experiment(o),
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

static int create_parts(struct dptrack_run *run, const struct dptrack_run_opts *o, struct err *err)
{
	run->arena = arena_new();
	run->keys = keys_new();
	run->lanes = log_queue_new(LIMIT_queue_points);
	run->warn = warn_new(o->warn, o->warn_user);
	run->records = records_new(run->rank == 0);
	run->printed = console_capture_new();
	if (!run->arena || !run->keys || !run->lanes || !run->warn || !run->records || !run->printed)
		return err_nomem(err, NULL);
	return open_fork_page(run, err);
}

static int open_run_journal(struct dptrack_run *run, const struct dptrack_run_opts *o, struct err *err)
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

static void post_server_notice(void *user, const char *text)
{
	struct dptrack_run *run = user;

	warn_post(run->warn, WARN_SERVER, "%s", text);
}

/* An unusable server must not stop training: it costs only a warning. */
static void start_uplink(struct dptrack_run *run, const struct dptrack_run_opts *o)
{
	const char *url = o->url ? o->url : getenv("DPTRACK_URL"), *token;
	char found[HTTP_TOKEN_BYTES];
	struct err err = ERR_INIT;

	if (!url || !*url)
		return;
	token = o->token ? o->token : http_token(url, found);
	run->url = arena_strdup(run->arena, url);
	run->token = arena_strdup(run->arena, token);
	if (journal_uploader_start(&run->uplink,
			 &(struct journal_uploader_opts){ .url = url,
						.token = token,
						.run_id = run->id,
						.notice = post_server_notice,
						.user = run },
			 &err))
		warn_post(run->warn, WARN_SERVER, "the run is not sent to a server: %s", err.text);
	else
		journal_uploader_advance(run->uplink, journal_path(run->journal), journal_writer_id(run->journal),
					 journal_bytes(run->journal));
}

static void adopt_journal(void *user, const struct journal_file *f)
{
	char writer_id[NAMES_ID_BYTES];

	snprintf(writer_id, sizeof(writer_id), "%.*s", (int)f->header->writer_id.len, f->header->writer_id.at);
	journal_uploader_adopt(((struct dptrack_run *)user)->uplink, f->path, writer_id, f->bytes);
}

/* Sends what ended processes could not: those of earlier segments when a run is reopened, and dead ones when the
 * launcher ends. */
static void adopt_all_journals(struct dptrack_run *run)
{
	if (run->uplink)
		run_folder_journals(run->folder.dir, run->id, adopt_journal, run);
}

/* Warns if another process appends to the journal, of the same rank. A journal is locked while its writer has it open;
 * children of a crashed writer keep the lock, so on this machine the writer must live, too. */
static void check_other_writer(void *user, const struct journal_file *f)
{
	struct dptrack_run *run = user;
	const struct event_header *h = f->header;
	bool other = h->rank == run->rank && strcmp(f->path, journal_path(run->journal)) != 0;
	int fd = other ? open(f->path, O_RDONLY | O_CLOEXEC) : -1;
	char host[FILE_NAME_BYTES], text[512];

	names_host(host);
	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK &&
	    (!event_text_equal(h->host, host) || !kill((pid_t)h->pid, 0) || errno == EPERM)) {
		snprintf(text, sizeof(text),
			 "process %lld on %.*s also records run %s: the process that started last hides the points of "
			 "the other from its first step on: give each process a run of its own, or a rank (rank and "
			 "world_size)", (long long)h->pid, (int)h->host.len, h->host.at, run->id);
		warn_post(run->warn, WARN_WRITER, "%s", text);
		dptrack_alert(run, DPTRACK_WARNING, 0, "Two processes record this run", text);
	}
	if (fd >= 0)
		close(fd);
}

static void free_run(struct dptrack_run *run)
{
	if (!run)
		return;
	journal_close(run->journal);
	records_free(run->records);
	console_capture_free(run->printed);
	warn_free(run->warn);
	log_queue_free(run->lanes);
	keys_free(run->keys);
	arena_free(run->arena);
	pthread_mutex_destroy(&run->files_lock);
	if (run->is_owner)
		munmap((void *)run->is_owner, PAGE_BYTES);
	free(run);
}

int dptrack_run_open(struct dptrack_run **ret, const struct dptrack_run_opts *opts, struct dptrack_error *error)
{
	static const struct dptrack_run_opts defaults;
	const struct dptrack_run_opts *o = opts ? opts : &defaults;
	struct dptrack_run *run = calloc(1, sizeof(*run));
	struct err err = ERR_INIT;
	int rc;

	if (!run) {
		err_nomem(&err, NULL);
		return copy_error(error, &err);
	}
	pthread_mutex_init(&run->files_lock, NULL);
	rc = check_run_opts(o, &err);
	if (rc)
		goto out;
	run->rank = o->role == DPTRACK_LAUNCHER ? EVENT_RANK_LAUNCHER : o->rank;
	run->series = run->rank > 0 ? run->rank : EVENT_RANK_RUN;
	atomic_init(&run->newest_step, o->first_step - 1); /* -1, or the step before a restart's first */
	run->close_wait_s = o->close_wait_s == 0 ? CLOSE_WAIT_S : o->close_wait_s;
	rc = create_parts(run, o, &err);
	if (!rc)
		rc = open_run_folder(run, o, &err);
	if (!rc)
		rc = open_run_journal(run, o, &err);
	if (rc)
		goto out;
	if (o->run_id && !run->rank)
		run_folder_journals(run->folder.dir, run->id, check_other_writer, run);
	start_uplink(run, o);
	if (o->reopen)
		adopt_all_journals(run);
	rc = writer_start(&run->writer,
			  &(struct writer_opts){ .journal = run->journal,
						 .lanes = run->lanes,
						 .records = run->records,
						 .printed = run->printed,
						 .warn = run->warn,
						 .uplink = run->uplink,
						 .dropped = &run->dropped,
						 .journal_rank = run->rank },
			  &err);
	if (rc && run->uplink)
		journal_uploader_stop(run->uplink, -1);
	if (rc)
		goto out;
	*ret = run;
	run = NULL;
out:
	free_run(run);
	return rc ? copy_error(error, &err) : 0;
}

/* ---- find ---- */

static int find_run_on_disk(struct dptrack_found *ret, const struct dptrack_run_opts *o, struct arena *arena,
			    struct err *err)
{
	struct run_folder f;
	int rc = check_run_opts(o, err);

	if (!rc && !o->run_id && !o->run_name && o->experiment)
		rc = err_set(err, ERR_USAGE, "the run's name is required to find it in an experiment");
	if (!rc)
		rc = run_folder_find(&f, ret->id, arena,
				     &(struct run_folder_opts){ .runs_dir = run_folders_dir(o->runs_dir),
								.experiment = choose_experiment(o),
								.run_name = o->run_name,
								.run_id = o->run_id,
								.must_exist = o->run_id != NULL },
				     err);
	if (rc)
		return rc;
	if ((size_t)snprintf(ret->dir, sizeof(ret->dir), "%s", f.dir) >= sizeof(ret->dir))
		return err_set(err, ERR_USAGE, "%.100s…: the path is too long", f.dir);
	ret->newest_segment = f.newest_segment;
	return 0;
}

int dptrack_find(struct dptrack_found *ret, const struct dptrack_run_opts *opts, struct dptrack_error *error)
{
	struct err err = ERR_INIT;
	struct dptrack_found found;
	struct arena *arena = arena_new();
	int rc = arena ? find_run_on_disk(&found, opts, arena, &err) : err_nomem(&err, NULL);

	arena_free(arena);
	if (rc)
		return copy_error(error, &err);
	*ret = found;
	return 0;
}

/* ---- the machine ---- */

int dptrack_gpu(struct dptrack_run *run, const char *uuid)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (!uuid || strlen(uuid) >= sizeof(run->gpu) || run->sampler)
		return DPTRACK_USAGE;
	memcpy(run->gpu, uuid, strlen(uuid) + 1);
	return 0;
}

int dptrack_system(struct dptrack_run *run, double interval_s)
{
	struct err err = ERR_INIT;
	int rc;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (!(interval_s >= SYSTEM_LEAST_S) || run->sampler)
		return DPTRACK_USAGE;
	rc = system_sampler_start(&run->sampler, run, interval_s, &err);
	if (rc)
		warn_post(run->warn, WARN_SYSTEM, "the system/… series are not recorded: %s", err.text);
	return rc;
}

/* ---- close ---- */

/* Waits close_wait_s for both together. Files go second: the server accepts them only for a known run. */
static int stop_uploads(struct dptrack_run *run)
{
	double until_s = clock_mono_s() + run->close_wait_s;
	uint64_t unsent = run->uplink ? journal_uploader_stop(run->uplink, run->close_wait_s) : 0;
	size_t lacking = file_uploader_stop(run->courier, until_s - clock_mono_s());

	run->uplink = NULL;
	run->courier = NULL;
	if (unsent)
		warn_post(run->warn, WARN_UNSENT,
			  "the server lacks the last %llu bytes of the run's journals; they remain in %s",
			  (unsigned long long)unsent, run->folder.dir);
	if (lacking)
		warn_post(run->warn, WARN_LACKING,
			  "the server lacks %zu of the run's files; all remain in %s/" RUN_FILES, lacking,
			  run->folder.dir);
	return unsent || lacking ? DPTRACK_UNSENT : 0;
}

int dptrack_run_close(struct dptrack_run *run, enum dptrack_status status)
{
	struct err err = ERR_INIT;
	uint64_t lost = 0;
	int rc, sent;

	if (!run)
		return 0;
	if (!run_usable(run))
		return DPTRACK_FORKED;
	if ((unsigned)status > DPTRACK_SCHEDULED)
		status = DPTRACK_RUNNING;
	system_sampler_stop(run->sampler);
	rc = writer_stop(run->writer, (enum event_status)status, &lost, &err);
	if (lost || rc == ERR_BUSY) /* other errors have already been reported */
		warn_post(run->warn, WARN_DISK, "%s; points not written: %llu or more", err.text,
			  (unsigned long long)lost);
	if (rc == ERR_BUSY) { /* the writer thread still uses the run: do not free it */
		warn_deliver(run->warn, true);
		warn_mute(run->warn);
		return DPTRACK_IO;
	}
	if (run->rank == EVENT_RANK_LAUNCHER)
		adopt_all_journals(run);
	sent = stop_uploads(run);
	warn_deliver(run->warn, true);
	free_run(run);
	return rc ? rc : sent;
}

int dptrack_flush(struct dptrack_run *run, double wait_s)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	return writer_flush(run->writer, wait_s) ? DPTRACK_IO : 0;
}

/* ---- properties of a run ---- */

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

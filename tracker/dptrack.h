/* SPDX-License-Identifier: Apache-2.0 */
/* dptrack.h: records training runs. The public header of libdptrack (pkg-config: dptrack).
 *
 * A run is a folder <runs_dir>/<experiment>/<run name>-<8 digits of its id>/. Every process that takes part (a rank,
 * the launcher) opens the run once and appends to its own journal file in that folder. `dptrack serve --logdir
 * <runs_dir>` and `tensorboard --logdir <runs_dir>` read it while it grows. With a URL the bytes also go to a server.
 *
 *	struct dptrack_run *run;
 *	struct dptrack_error error;
 *
 *	if (dptrack_run_open(&run, &(struct dptrack_run_opts){ .experiment = "mnist", .run_name = "first" }, &error))
 *		fprintf(stderr, "%s\n", error.text);
 *	dptrack_param_f64(run, "lr", 0.1);
 *	for (int step = 1; step <= 1000; step++)
 *		dptrack_log(run, step, "train/loss", loss);
 *	dptrack_run_close(run, DPTRACK_FINISHED);
 *
 * Threads: every function may be called from any thread at any time between open and close. Call close once, when
 * no other thread uses the run any more. Points logged by one thread keep their order.
 * Only open, flush and close (for a bounded time) and dptrack_file, which copies, wait for a disk or a network.
 * After open no failure stops the caller: a full disk or an absent server costs a warning (opts.warn) and finally a
 * count of lost points. The return values after open may be ignored. The library never prints and never exits.
 * Fork: the run belongs to the process that opened it; in a child of fork() every call on it does nothing.
 * Text is UTF-8; invalid bytes are replaced by U+FFFD. All strings are copied. */
#ifndef DPTRACK_H
#define DPTRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dptrack_run;

enum dptrack_code {
	DPTRACK_OK = 0,
	DPTRACK_USAGE = -1,    /* an argument breaks a rule in the function's comment */
	DPTRACK_NOENT = -2,    /* no run with that id under runs_dir */
	DPTRACK_CONFLICT = -3, /* the param already has another value */
	DPTRACK_NOMEM = -4,
	DPTRACK_IO = -5,
	DPTRACK_NOSPC = -6,
	DPTRACK_LIMIT = -8,   /* a queue is full, or the run has too many keys or params */
	DPTRACK_UNSENT = -10, /* close: the server lacks part of the journal (which is still on disk) */
	DPTRACK_FORKED = -12, /* called in a child of fork() */
};

struct dptrack_error {
	int code;	/* enum dptrack_code */
	char text[504]; /* one line: what, where, what to do */
};

enum dptrack_status {
	DPTRACK_RUNNING = 0,
	DPTRACK_FINISHED = 1,
	DPTRACK_FAILED = 2,
	DPTRACK_KILLED = 3,    /* interrupted by a person or the system */
	DPTRACK_PREEMPTED = 4, /* stopped after a checkpoint, to be resumed */
	DPTRACK_SCHEDULED = 5, /* waits for its start */
};

enum dptrack_role {
	DPTRACK_RANK = 0,     /* a process that trains */
	DPTRACK_LAUNCHER = 1, /* the process that started the ranks; its status is final */
};

/* Every member is optional: a zeroed struct opens a new run with one rank. */
struct dptrack_run_opts {
	const char *runs_dir;	/* NULL: $DPTRACK_RUNS_DIR, or "runs"; created if absent */
	const char *experiment; /* NULL: "default" */
	const char *run_name;	/* NULL: a name derived from the id */

	/* NULL: a new run with a random id. Otherwise 32 lower-case hex digits: join that run as one more process. Rank
	 * 0 draws the id, with dptrack_draw_id or by opening, and passes it to the others; all use the same runs_dir,
	 * experiment and run_name. With reopen: continue that run, which is found by its id alone. */
	const char *run_id;
	int rank;	/* from 0 */
	int world_size; /* 0: 1 */
	enum dptrack_role role;

	/* A restart opens a new segment of the run: first_step is the first step that it will log, first_epoch the
	 * first epoch that it will finish. Points of earlier segments from that step on are kept, but hidden by
	 * default. One process (rank 0) sets reopen; the others join with segment = dptrack_run_segment of rank 0 and
	 * the same first_step and first_epoch. */
	bool reopen;
	int segment; /* 0: the first one; with reopen: one more than the newest in the folder */
	int64_t first_step;
	int64_t first_epoch;

	const char *url;     /* server that also receives the journal; NULL: $DPTRACK_URL; "": none */
	const char *token;   /* NULL: $DPTRACK_TOKEN, else that of `dptrack login` */
	double close_wait_s; /* longest time that close waits for the server; 0: 10 s; negative: none */

	/* Called at most once a minute for each kind of trouble, with one line of text, from a thread of the library or
	 * from within dptrack_run_close. Must not call the library. NULL: no warnings. */
	void (*warn)(void *user, const char *text);
	void *warn_user;

	void *reserved[8]; /* NULL; space for later options */
};

/* Opens a run: creates the folder and the journal and starts the writer thread. Returns 0 or a negative enum
 * dptrack_code. On failure *ret is unchanged and error (may be NULL) is filled. */
int dptrack_run_open(struct dptrack_run **ret, const struct dptrack_run_opts *opts, struct dptrack_error *error);

/* The location of a run. */
struct dptrack_found {
	char id[33];
	int newest_segment;
	char dir[4096];
};

/* Finds a run: the run opts->run_id below opts->runs_dir, or without an id the newest run named opts->run_name in
 * opts->experiment (newest: started last). Without all three it finds the newest run in opts->runs_dir, which may be a
 * folder of runs or of experiments. Creates nothing. Returns DPTRACK_NOENT if no run matches. */
int dptrack_find(struct dptrack_found *ret, const struct dptrack_run_opts *opts, struct dptrack_error *error);

/* What dptrack_read reports about a run; texts are valid during the call. */
struct dptrack_journal { /* one process that took part */
	const char *run_id, *run_name, *experiment, *host;
	int rank; /* -1: a launcher */
	int world_size, segment;
	double wall_time; /* when it was opened, in seconds since 1970 UTC */
};

struct dptrack_point {
	const char *key;
	int rank;    /* -1: of the whole run */
	int segment; /* from its first step on, a later segment replaces the points of earlier ones */
	int64_t step;
	double wall_time, value; /* seconds since 1970 UTC */
};

enum dptrack_fact { DPTRACK_FACT_PARAM = 1, DPTRACK_FACT_TAG = 2, DPTRACK_FACT_ENVIRONMENT = 3 };

/* Any function may be NULL. */
struct dptrack_reader {
	void *user;
	void (*journal)(void *user, const struct dptrack_journal *journal); /* before the contents of that journal */
	void (*point)(void *user, const struct dptrack_point *point);
	void (*fact)(void *user, enum dptrack_fact kind, const char *key, const char *value);
	/* A change of the status, in the order of each journal; reason is "" without a reason. */
	void (*status)(void *user, enum dptrack_status status, double wall_time, const char *reason);
	void *reserved[3]; /* NULL; space for later functions */
};

/* Reads all journals in the folder of a run, finished or not, one by one. Returns 0, DPTRACK_NOENT without a journal,
 * or DPTRACK_USAGE if one is unreadable. */
int dptrack_read(const char *dir, const struct dptrack_reader *reader, struct dptrack_error *error);

/* Closes the run: writes everything that is queued and the status, waits for the disk and at most close_wait_s for the
 * server, then frees the run (NULL is fine). DPTRACK_RUNNING keeps the status (for a rank that ends before others).
 * Returns 0, or the code of what failed (DPTRACK_IO also if the journal was removed); the run is freed in either
 * case. */
int dptrack_run_close(struct dptrack_run *run, enum dptrack_status status);

/* Waits until everything logged so far is in the journal file, where readers see it, for at most wait_s seconds.
 * Returns 0, or DPTRACK_IO on timeout or if the disk refuses the write (the data stays queued). */
int dptrack_flush(struct dptrack_run *run, double wait_s);

/* Properties of a run; texts are borrowed until close. */
const char *dptrack_run_id(const struct dptrack_run *run);   /* 32 lower-case hex digits */
const char *dptrack_run_name(const struct dptrack_run *run); /* as given or derived from the id */
const char *dptrack_run_dir(const struct dptrack_run *run);  /* the run's folder */
int dptrack_run_segment(const struct dptrack_run *run);	     /* from 0 */

/* Draws a run id: 32 random lower-case hex digits and a NUL, for a launcher to pass to its ranks as run_id. Returns 0
 * or DPTRACK_IO. */
int dptrack_draw_id(char ret[33]);

/* Logs one point of the series key. In rank 0 the series belongs to the whole run; in any other rank to that rank. The
 * call only queues (2^20 points; a full queue drops the newest, warns, and counts them in the series dptrack/dropped).
 * The time is the current time; NaN and infinities are kept. key: 1 to 250 characters without control characters; step
 * >= 0 by convention. */
int dptrack_log(struct dptrack_run *run, int64_t step, const char *key, double value);

/* Logs n points with the same step and time: keys[i] has values[i]. Returns 0, or the code of the last point that was
 * refused; the others are logged. */
int dptrack_log_many(struct dptrack_run *run, int64_t step, size_t n, const char *const *keys, const double *values);

/* Logs a point like dptrack_log for a series of the given rank (rank >= 0) or of the whole run (-1), from any
 * process. */
int dptrack_log_rank(struct dptrack_run *run, int rank, int64_t step, const char *key, double value);

/* Logs a point like dptrack_log_rank with the caller's time: seconds since 1970 UTC, not NaN. For importers. */
int dptrack_log_at(struct dptrack_run *run, int rank, int64_t step, const char *key, double value, double wall_time);

/* Selects the GPU whose statistics dptrack_system records. uuid: of the NVIDIA GPU that this process uses ("GPU-…", as
 * nvidia-smi -L prints it). The series are its use, memory, power, temperature and clock (system/gpu_util_percent and
 * others). Call it before dptrack_system. Without such a GPU, or without a driver, these series are missing. */
int dptrack_gpu(struct dptrack_run *run, const char *uuid);

/* Starts to record system statistics. They are series of this process's rank about cores, memory, disks and network
 * (system/cpu_percent and others). A sample is taken every interval_s seconds (at least 0.1) and once more at close.
 * Its step is the newest one logged. Call it once per run. */
int dptrack_system(struct dptrack_run *run, double interval_s);

/* Sets a param. Params are write-once: the first value is kept, another one is refused with a warning. Set params that
 * TensorBoard's HParams tab shows before the first point or flush. Values over 8000 bytes are truncated. */
int dptrack_param(struct dptrack_run *run, const char *key, const char *value);
int dptrack_param_f64(struct dptrack_run *run, const char *key, double value);
int dptrack_param_i64(struct dptrack_run *run, const char *key, int64_t value);
int dptrack_param_bool(struct dptrack_run *run, const char *key, bool value);

/* Sets a param that may have a value already: the new one replaces it, and the store notes the change among the
 * problems of the run. */
int dptrack_param_change(struct dptrack_run *run, const char *key, const char *value);

/* Sets a param that may differ between segments: world size, threads, host, command line. */
int dptrack_segment_param(struct dptrack_run *run, const char *key, const char *value);

/* Sets a tag, or the note of the run. */
int dptrack_tag(struct dptrack_run *run, const char *key, const char *value); /* the last value is kept */
int dptrack_note(struct dptrack_run *run, const char *markdown);	      /* the last one is kept; at most 64 KiB */

/* Records a fact about the machine or program of this process: "host", "cpu", "git_commit", … */
int dptrack_environment(struct dptrack_run *run, const char *key, const char *value);

/* Changes the status before close; reason (may be NULL) is one line of text. */
int dptrack_set_status(struct dptrack_run *run, enum dptrack_status status, const char *reason);

/* Media, which TensorBoard and the server show, under a key that is not a series', at a step. They belong to this
 * process's rank like dptrack_log's points. At most 8 MiB each; all are copied. */
struct dptrack_bytes {
	const void *at;
	size_t n;
};

/* Logs an encoded picture (PNG, JPEG, GIF, WebP) and its size in pixels. */
int dptrack_image(struct dptrack_run *run, int64_t step, const char *key, const struct dptrack_bytes *file, int width,
		  int height);

/* Logs an encoded sound and its media type ("audio/wav"). */
int dptrack_audio(struct dptrack_run *run, int64_t step, const char *key, const struct dptrack_bytes *file,
		  const char *type);

/* Logs a histogram: counts[i] of bins values are between edges[i] and edges[i + 1]; bins + 1 ascending edges. */
int dptrack_histogram(struct dptrack_run *run, int64_t step, const char *key, const double *edges, const double *counts,
		      size_t bins);

/* Logs a text in Markdown. */
int dptrack_text(struct dptrack_run *run, int64_t step, const char *key, const char *markdown);

/* Logs a table: cells as text, row by row; the first row has the titles. */
int dptrack_table(struct dptrack_run *run, int64_t step, const char *key, const char *const *cells, size_t rows,
		  size_t columns);

/* Stores a copy of the file at path with the run. name: parts separated by single slashes, none of them "." or "..", at
 * most 1000 bytes. The copy is below files/ in the run's folder; the journal has its size and SHA-256. With a URL it is
 * also sent to the server, where it is an artifact. A second call with the same name replaces the file. Returns after
 * the copy. DPTRACK_USAGE: the name is invalid, or path is not a readable regular file; DPTRACK_IO, DPTRACK_NOSPC: the
 * copy failed. */
int dptrack_file(struct dptrack_run *run, const char *name, const char *path);

/* Records console output: stream 1 is standard output, 2 standard error. Pieces need not be whole lines; a line that is
 * overwritten (a progress bar) is kept about once a second. Returns DPTRACK_LIMIT if the queue is full; a line with the
 * number of lost lines replaces them. */
int dptrack_console(struct dptrack_run *run, int stream, const char *bytes, size_t n);

/* Records what ran, by name: "commit", "branch", "remote", "diff" (of the working tree against the commit), "packages"
 * (one per line), or others. Text over 1 MiB is truncated. */
int dptrack_code(struct dptrack_run *run, const char *name, const char *text);

/* A data set that the run reads. Name and digest are required; the rest may be NULL. Longer texts are truncated. */
struct dptrack_input_opts {
	const char *name;	 /* at most 500 bytes */
	const char *digest;	 /* identifies the content, such as a SHA-256; at most 64 bytes */
	const char *context;	 /* "training", "validation", …; at most 100 bytes */
	const char *source_type; /* "local", "http", "s3", …; at most 100 bytes */
	const char *source;	 /* its address, without secrets; at most 8000 bytes */
	const char *profile;	 /* a JSON object of its sizes, as MLflow shows them; at most 8000 bytes */
	void *reserved[4];	 /* NULL; space for later options */
};

/* Records an input of the run. The same name and digest again change nothing. */
int dptrack_input(struct dptrack_run *run, const struct dptrack_input_opts *input);

enum dptrack_level { DPTRACK_INFO = 1, DPTRACK_WARNING = 2, DPTRACK_ERROR = 3 };

/* Sends an alert: a title of at most 250 bytes and a text (may be NULL) of at most 8000. */
int dptrack_alert(struct dptrack_run *run, enum dptrack_level level, int64_t step, const char *title, const char *text);

/* Returns the number of points lost so far: full queue, refused keys. */
uint64_t dptrack_dropped(const struct dptrack_run *run);

#ifdef __cplusplus
}
#endif

#endif

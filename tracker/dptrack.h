/* dptrack.h: records training runs. The public header of libdptrack (pkg-config: dptrack).
 *
 * A run is a folder <runs_dir>/<experiment>/<run name>-<8 digits of its id>/. Every process that takes part (a rank,
 * the launcher) opens the run once and appends to a journal file of its own there; `dptrack serve --logdir <runs_dir>`
 * and `tensorboard --logdir <runs_dir>` read it while it grows. With a URL the same bytes are also sent to a server.
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
 * Threads: every function may be called from any thread at any time between open and close; close is called once, when
 * no other thread uses the run any more. Points that one thread logs keep their order.
 * Nothing here waits for a disk or a network, but open, flush and close (for a bounded time), and dptrack_file, which
 * copies. After open no failure
 * stops the caller: a full disk or an absent server costs a warning (opts.warn) and, in the end, a count of what was
 * lost. The return values after open may be ignored. The library never prints and never exits.
 * Fork: the run stays with the process that opened it; in a child of fork() every call on it does nothing.
 * Text is UTF-8; bytes that are not are replaced by U+FFFD. All strings are copied. */
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
	DPTRACK_USAGE = -1,    /* an argument breaks a rule that stands beside the function */
	DPTRACK_NOENT = -2,    /* no run of that id under runs_dir */
	DPTRACK_CONFLICT = -3, /* the param has another value already */
	DPTRACK_NOMEM = -4,
	DPTRACK_IO = -5,
	DPTRACK_NOSPC = -6,
	DPTRACK_LIMIT = -8,   /* a queue is full, or more keys or params than a run may have */
	DPTRACK_UNSENT = -10, /* close: the server lacks part of the journal (which is still on disk) */
	DPTRACK_FORKED = -12, /* called in a child of fork() */
};

struct dptrack_error {
	int code;       /* enum dptrack_code */
	char text[504]; /* one line: what, where, what to do */
};

enum dptrack_status {
	DPTRACK_RUNNING = 0,
	DPTRACK_FINISHED = 1,
	DPTRACK_FAILED = 2,
	DPTRACK_KILLED = 3,    /* interrupted by a person or the system */
	DPTRACK_PREEMPTED = 4, /* stopped after a checkpoint, to be continued */
	DPTRACK_SCHEDULED = 5, /* waits to be started */
};

enum dptrack_role {
	DPTRACK_RANK = 0,     /* a process that trains */
	DPTRACK_LAUNCHER = 1, /* the process that started the ranks; has the last word on the status */
};

/* Everything is optional: a zeroed struct opens a new run with one rank. */
struct dptrack_run_opts {
	const char *runs_dir;   /* NULL: "runs"; made when absent */
	const char *experiment; /* NULL: "default" */
	const char *run_name;   /* NULL: a name made from the id */

	/* NULL: a new run with a random id. Else 32 lower-case hex digits: join that run as one more process (rank 0
	 * draws the id, with dptrack_draw_id or by opening, and tells the others; all give the same runs_dir,
	 * experiment and run_name). With reopen: continue that run, found by its id alone. */
	const char *run_id;
	int rank;       /* from 0 */
	int world_size; /* 0: 1 */
	enum dptrack_role role;

	/* A restart opens a new segment of the run: first_step is the first step that it will log, first_epoch the
	 * first epoch that it will finish. Earlier segments' points from there on are kept, but hidden by default.
	 * One process (rank 0) sets reopen; the others join with segment = dptrack_run_segment of rank 0 and the same
	 * first_step and first_epoch. */
	bool reopen;
	int segment; /* 0: the first one, or with reopen one more than the newest found in the folder */
	int64_t first_step;
	int64_t first_epoch;

	const char *url;     /* server that also gets the journal; NULL: $DPTRACK_URL; "": none */
	const char *token;   /* NULL: $DPTRACK_TOKEN */
	double close_wait_s; /* longest wait of close for the server; 0: 10 s; negative: none */

	/* Called for each kind of trouble at most once a minute, with one line of text, from a thread of the library
	 * or from within dptrack_run_close. Must not call back into the library. NULL: silence. */
	void (*warn)(void *user, const char *text);
	void *warn_user;

	void *reserved[8]; /* NULL; room for later options */
};

/* Makes the folder and the journal, starts the writer thread. 0 or a negative enum dptrack_code; *ret is untouched and
 * error (may be NULL) filled on failure. */
int dptrack_run_open(struct dptrack_run **ret, const struct dptrack_run_opts *opts, struct dptrack_error *error);

/* Where a run lies. */
struct dptrack_found {
	char id[33];
	int newest_segment;
	char dir[4096];
};

/* Looks for the run opts->run_id below opts->runs_dir, or without an id for the newest run named opts->run_name in
 * opts->experiment (newest: begun last). With none of the three it is the newest of all in opts->runs_dir, be that a
 * folder of runs or of experiments. Makes nothing. DPTRACK_NOENT when there is none. */
int dptrack_find(struct dptrack_found *ret, const struct dptrack_run_opts *opts, struct dptrack_error *error);

/* What dptrack_read tells of a run; texts live during the call. */
struct dptrack_journal { /* one process that took part */
	const char *run_id, *run_name, *experiment, *host;
	int rank; /* -1: a launcher */
	int world_size, segment;
};

struct dptrack_point {
	const char *key;
	int rank;    /* -1: of the run as a whole */
	int segment; /* a later one stands for what earlier ones say of steps from its first on */
	int64_t step;
	double wall_time, value; /* seconds since 1970 UTC */
};

enum dptrack_fact { DPTRACK_FACT_PARAM = 1, DPTRACK_FACT_TAG = 2, DPTRACK_FACT_ENVIRONMENT = 3 };

/* Any of the functions may be NULL. */
struct dptrack_reader {
	void *user;
	void (*journal)(void *user, const struct dptrack_journal *journal); /* before what stands in it */
	void (*point)(void *user, const struct dptrack_point *point);
	void (*fact)(void *user, enum dptrack_fact kind, const char *key, const char *value);
	void *reserved[4]; /* NULL; room for later functions */
};

/* Reads the journals in the folder of a run, finished or not, one after the other. 0; DPTRACK_NOENT: there is none;
 * DPTRACK_USAGE: one cannot be read. */
int dptrack_read(const char *dir, const struct dptrack_reader *reader, struct dptrack_error *error);

/* Writes everything that is queued and the status, waits for the disk and at most close_wait_s for the server, then
 * frees the run (NULL is fine). DPTRACK_RUNNING leaves the status as it is (a rank that ends before others).
 * 0, or the code of what could not be completed (DPTRACK_IO too when the journal was removed meanwhile); the run is
 * gone in either case. */
int dptrack_run_close(struct dptrack_run *run, enum dptrack_status status);

/* Waits until everything logged before is in the journal file (for a follower to see); at most wait_s seconds.
 * 0, or DPTRACK_IO when that time is over first or the disk refuses now (what is queued stays so). */
int dptrack_flush(struct dptrack_run *run, double wait_s);

/* Borrowed until close. */
const char *dptrack_run_id(const struct dptrack_run *run);   /* 32 lower-case hex digits */
const char *dptrack_run_name(const struct dptrack_run *run); /* as given or made */
const char *dptrack_run_dir(const struct dptrack_run *run);  /* the run's folder */
int dptrack_run_segment(const struct dptrack_run *run);      /* from 0 */

/* 32 random lower-case hex digits and a NUL; what a launcher hands to its ranks as run_id. 0 or DPTRACK_IO. */
int dptrack_draw_id(char ret[33]);

/* One point of the series key. In rank 0 it belongs to the run as a whole; in any other rank to that rank. Only queues
 * (2^20 points; a full queue drops the newest, warns, and counts them in the series dptrack/dropped). Time is now; NaN
 * and infinities are kept. key: 1 to 250 characters without control characters; step >= 0 by custom. */
int dptrack_log(struct dptrack_run *run, int64_t step, const char *key, double value);

/* n points of one step and one moment: keys[i] has values[i]. 0, or the code of the last one that was refused; the
 * others are taken. */
int dptrack_log_many(struct dptrack_run *run, int64_t step, size_t n, const char *const *keys, const double *values);

/* dptrack_log for a series of one rank (rank >= 0), or of the whole run (-1), whatever process this is. */
int dptrack_log_rank(struct dptrack_run *run, int rank, int64_t step, const char *key, double value);

/* The same with a time of the caller's (seconds since 1970 UTC; not NaN): for importers. */
int dptrack_log_at(struct dptrack_run *run, int rank, int64_t step, const char *key, double value, double wall_time);

/* The NVIDIA GPU that this process works on ("GPU-…", as nvidia-smi -L prints it), whose use, memory, power,
 * temperature and clock dptrack_system then records too (system/gpu_util_percent and others). To be called before it.
 * Where there is no such GPU, or no driver, these series are left out. */
int dptrack_gpu(struct dptrack_run *run, const char *uuid);

/* From now on records what the machine says of itself (cores, memory, disks, network: system/cpu_percent and others)
 * as series of this process's rank, every interval_s seconds (at least 0.1) and once more at close, by the newest step
 * that was logged. Of each run once. */
int dptrack_system(struct dptrack_run *run, double interval_s);

/* Params are write-once: the first value wins, another one is refused with a warning. Set those that TensorBoard's
 * HParams tab shall show before the first point or flush. Over-long values (8000 bytes) are cut. */
int dptrack_param(struct dptrack_run *run, const char *key, const char *value);
int dptrack_param_f64(struct dptrack_run *run, const char *key, double value);
int dptrack_param_i64(struct dptrack_run *run, const char *key, int64_t value);
int dptrack_param_bool(struct dptrack_run *run, const char *key, bool value);

/* A param that may differ from segment to segment: world size, threads, host, command line. */
int dptrack_segment_param(struct dptrack_run *run, const char *key, const char *value);

int dptrack_tag(struct dptrack_run *run, const char *key, const char *value); /* the last value wins */
int dptrack_note(struct dptrack_run *run, const char *markdown);              /* the last one wins; at most 64 KiB */

/* A fact about the machine or program of this process: "host", "cpu", "git_commit", … */
int dptrack_environment(struct dptrack_run *run, const char *key, const char *value);

/* Changes the status before close does; reason (may be NULL) is a line for people. */
int dptrack_set_status(struct dptrack_run *run, enum dptrack_status status, const char *reason);

/* Media: what TensorBoard shows of these, and the server too, under a key that is not a series', at a step; of this
 * process's rank as dptrack_log's points are. At most 8 MiB each; all are copied. */
struct dptrack_bytes {
	const void *at;
	size_t n;
};

/* An encoded picture (PNG, JPEG, GIF, WebP) and its pixels. */
int dptrack_image(struct dptrack_run *run, int64_t step, const char *key, const struct dptrack_bytes *file, int width,
		  int height);

/* An encoded sound and its media type ("audio/wav"). */
int dptrack_audio(struct dptrack_run *run, int64_t step, const char *key, const struct dptrack_bytes *file,
		  const char *type);

/* counts[i] of bins values lie between edges[i] and edges[i + 1]: bins + 1 edges, which rise. */
int dptrack_histogram(struct dptrack_run *run, int64_t step, const char *key, const double *edges, const double *counts,
		      size_t bins);

int dptrack_text(struct dptrack_run *run, int64_t step, const char *key, const char *markdown);

/* Cells as text, row by row; the first row has the titles. */
int dptrack_table(struct dptrack_run *run, int64_t step, const char *key, const char *const *cells, size_t rows,
		  size_t columns);

/* Keeps a copy of the file at path with the run under a name of its own: parts divided by single slashes, none of them
 * "." or "..", of at most 1000 bytes. It lies below files/ in the run's folder, its size and SHA-256 stand in the
 * journal, and with a URL it is sent to the server, where it is an artifact. Once more under a name replaces it.
 * Returns when it is copied. DPTRACK_USAGE: the name, or no regular file can be read there; DPTRACK_IO,
 * DPTRACK_NOSPC: the copy. */
int dptrack_file(struct dptrack_run *run, const char *name, const char *path);

/* What the process printed, as it printed it: stream 1 is standard output, 2 standard error. Pieces need not be whole
 * lines; a line that is printed over again (a progress bar) is kept about once a second. DPTRACK_LIMIT when more lines
 * come at once than can wait: a line in their place tells how many. */
int dptrack_console(struct dptrack_run *run, int stream, const char *bytes, size_t n);

/* What ran, by name: "commit", "branch", "remote", "diff" (of the working tree to the commit), "packages" (a line
 * each), or others; text of at most 1 MiB, which is cut behind it. */
int dptrack_code(struct dptrack_run *run, const char *name, const char *text);

/* A data set that the run reads. Name and digest are needed; the rest may be NULL. Texts beyond their lengths are
 * cut. */
struct dptrack_input_opts {
	const char *name;	 /* at most 500 bytes */
	const char *digest;	 /* tells one content from another, such as a SHA-256; at most 64 bytes */
	const char *context;	 /* "training", "validation", …; at most 100 bytes */
	const char *source_type; /* "local", "http", "s3", …; at most 100 bytes */
	const char *source;	 /* its address, without secrets; at most 8000 bytes */
	const char *profile;	 /* a JSON object of its sizes, as MLflow shows them; at most 8000 bytes */
	void *reserved[4];	 /* NULL; room for later options */
};

/* What a run shows as its inputs. The same name and digest once more changes nothing. */
int dptrack_input(struct dptrack_run *run, const struct dptrack_input_opts *input);

enum dptrack_level { DPTRACK_INFO = 1, DPTRACK_WARNING = 2, DPTRACK_ERROR = 3 };

/* Something that people should hear of now: a title of at most 250 bytes and a text (may be NULL) of at most 8000. */
int dptrack_alert(struct dptrack_run *run, enum dptrack_level level, int64_t step, const char *title,
		  const char *text);

/* Points lost so far: full queue, refused keys. */
uint64_t dptrack_dropped(const struct dptrack_run *run);

#ifdef __cplusplus
}
#endif

#endif

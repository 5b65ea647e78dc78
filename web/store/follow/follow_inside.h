/* follow_inside.h: shared by the follow*.c files: the follower, and its state of each file. All of it belongs to the
 * follower's thread, except what the lock guards. Private to them. */
#ifndef DPT_STORE_FOLLOW_INSIDE_H
#define DPT_STORE_FOLLOW_INSIDE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "web/store/follow/folder_tree.h"
#include "web/store/follow/follow.h"
#include "web/store/write/ingest.h"
#include "web/store/write/lease.h"

/* The run of a file below the followed folder. Our journals name it in their first record. For foreign files the
 * folder is the run, and its path supplies the names. */
struct origin {
	bool known, foreign;
	bool annotates; /* a note on the run in the parent folder (tb_hparams.h) */
	char run[33], writer[33];
};

#define ORIGIN_HEAD_BYTES 4096 /* bytes read of a file's head; our first records are shorter */

/* head: the first n bytes, at most ORIGIN_HEAD_BYTES. 1: found, 0: too short yet (also foreign files with only a
 * version record), -1: not a file of runs. */
int origin_find(struct origin *ret, const char *path, const void *head, size_t n);

/* The file is a note on the run in the parent folder of its own. */
void origin_lift(struct origin *o, const char *path);

/* Names for the run of a foreign file; root: name of the followed folder, for files directly in it. The texts are in
 * room or borrowed. */
struct origin_room {
	char folder[PATH_MAX], first[PATH_MAX];
};

void origin_names(const struct origin *o, const char *path, const char *root, struct ingest_foreign *ret,
		  struct origin_room *room);

/* The queue of a file; a file moves to a more urgent queue, never back. */
enum follow_turn {
	FOLLOW_NOWHERE,
	FOLLOW_URGENT,  /* just changed */
	FOLLOW_RECENT,  /* may grow soon: of a recently changed run, or not watched */
	FOLLOW_REST,
	FOLLOW_REFUSED, /* failed on disk or in the store, until the next retry */
	FOLLOW_TURNS
};

struct follow_file {
	struct follow *f;
	struct follow_file *next, **back; /* links of its queue; next also links finished files */
	enum follow_turn turn;
	enum follow_turn again;       /* the queue requested while a range was in transfer */
	const char *path;
	struct origin origin;
	uint64_t offset;        /* stored up to here */
	uint64_t size;          /* at the last read */
	size_t range;           /* bytes of the next read */
	bool asked;             /* offset was read from the store */
	bool under_way;
	size_t sent;            /* bytes in transfer */
	bool dead;
	/* 0: its growth is noticed; else it is polled until then */
	double glance_until_s;
	struct follow_file *next_glance;
	bool gone;              /* its run was removed for good: never read again */
	uint64_t dead_size;     /* a dead file is read again when its size changes */
	bool first;             /* found by the first scan, and not read to its end yet */
	int result;             /* of the last range */
};

struct follow_line {
	struct follow_file *first, **end;
};

/* A position in the list of stored files, recently changed runs first. */
struct follow_newest {
	int64_t rev, run, writer;
};

struct follow {
	struct store *s;
	char root[PATH_MAX], name[NAME_MAX + 1]; /* name: the last segment of root */
	bool poll_wanted, once;
	double poll_s;
	struct tree *tree;
	struct follow_newest newest_at; /* the last one read */
	size_t newest_count;
	int64_t learned;        /* the last row of the table writer read */
	bool knows_newest, knows_all, scanning, more_to_see;
	double scan_began_s, next_scan_s;
	struct map *files;      /* path -> struct follow_file */
	struct follow_line lines[FOLLOW_TURNS];
	double retry_at_s;
	struct follow_file *glances;   /* files that are polled */
	double next_glance_s;
	int wake_fd;
	struct lease lease; /* of the folder: one process of a store follows it */
	bool leads;         /* we had it at the last look */
	pthread_t thread;
	/* shared with the writer's thread and callers, guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct follow_file *done;      /* ranges answered, in any order */
	int under_way;
	size_t under_way_bytes;
	uint64_t first_left;
	bool scanned, stopping;
	int scan_code;
	struct err scan_err;
	struct follow_stats stats;
};

#define FOLLOW_GROWS_S 600.0 /* a file is expected to grow for this long after its last growth */

/* --- follow_files.c: any thread ----------------------------------------------------------------------------- */

void follow_wake(struct follow *f);
void follow_note(struct follow *f, const char *path, const char *text);

/* --- follow_files.c: the known files -------------------------------------------------------------------------- */

/* adds it if new; NULL when out of memory */
struct follow_file *follow_file_of(struct follow *f, const char *path);
void follow_enqueue(struct follow *f, struct follow_file *file, enum follow_turn turn);
/* the most urgent file; NULL: none to read now */
struct follow_file *follow_waiting(const struct follow *f);
struct follow_file *follow_dequeue(struct follow *f);       /* the same, removed from its queue */
void follow_requeue_refused(struct follow *f);
/* its content at the start is stored, or cannot be */
void follow_first_done(struct follow *f, struct follow_file *file);
void follow_found(void *arg, const struct tree_file *found); /* a tree_found; arg: the follower */

/* Reads some stored offsets: first the files of recently changed runs, which are read before the scan finds them
 * (f->knows_newest: done), then all files (f->knows_all: done). */
int follow_learn_newest(struct follow *f, struct err *err);
int follow_learn_some(struct follow *f, struct err *err);

/* Polls a file that no watch covers, for at least for_s seconds (may be INFINITY). */
void follow_glance_at(struct follow *f, struct follow_file *file, double for_s);
void follow_glance(struct follow *f); /* polls all of them */

/* --- follow_read.c: reading ----------------------------------------------------------------------------------- */

void follow_read(struct follow *f, struct follow_file *file); /* reads what is new */
void follow_collect(struct follow *f);                        /* handles the writer's answers */

#endif

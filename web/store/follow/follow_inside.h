/* follow_inside.h: what the files of this folder that are called follow share: the follower and what it knows of each
 * file. All of it belongs to the follower's thread but for what stands behind the lock. Private to them. */
#ifndef DPT_STORE_FOLLOW_INSIDE_H
#define DPT_STORE_FOLLOW_INSIDE_H

#include <limits.h>
#include <pthread.h>

#include "web/store/follow/follow.h"
#include "web/store/follow/origin.h"
#include "web/store/follow/folder_tree.h"
#include "web/store/write/lease.h"

/* When a file is read: it moves forward when it is wanted sooner. */
enum follow_turn {
	FOLLOW_NOWHERE,
	FOLLOW_URGENT,  /* it changed just now */
	FOLLOW_RECENT,  /* it may grow soon: its run changed last, or no watch tells of it */
	FOLLOW_REST,
	FOLLOW_REFUSED, /* by the disk, until it is time to try again */
	FOLLOW_TURNS
};

struct follow_file {
	struct follow *f;
	struct follow_file *next, **back; /* where it waits; next also among those that are done */
	enum follow_turn turn;
	enum follow_turn again;       /* wanted there while it was under way */
	const char *path;
	struct origin origin;
	uint64_t offset;        /* stored up to here */
	uint64_t size;          /* when it was read last */
	size_t range;           /* bytes of the next read */
	bool asked;             /* offset comes from the store */
	bool under_way;
	size_t sent;            /* bytes under way */
	bool dead;
	/* 0: its growth is noticed by others; else it is looked at every so often until then */
	double glance_until_s;
	struct follow_file *next_glance;
	bool gone;              /* of a run that was removed for good: never read again */
	uint64_t dead_size;     /* a dead file is looked at again when its size changes */
	bool first;             /* of the first scan, not read to its end yet */
	int result;             /* of the range that was under way */
};

struct follow_line {
	struct follow_file *first, **end;
};

/* A place among the files that the store knows, those of runs that changed last first. */
struct follow_newest {
	int64_t rev, run, writer;
};

struct follow {
	struct store *s;
	char root[PATH_MAX], name[NAME_MAX + 1]; /* name: the folder's own */
	bool poll_wanted, once;
	double poll_s;
	struct tree *tree;
	struct follow_newest newest_at; /* the last one that was learned */
	size_t newest_count;
	int64_t learned;        /* the newest row of the table writer that was */
	bool knows_newest, knows_all, scanning, more_to_see;
	double scan_began_s, next_scan_s;
	struct map *files;      /* path -> struct follow_file */
	struct follow_line lines[FOLLOW_TURNS];
	double retry_at_s;
	struct follow_file *glances;   /* files that no watch tells of */
	double next_glance_s;
	int wake_fd;
	struct lease lease; /* of the folder: one process of a store follows it */
	bool leads;         /* it was ours at the last look */
	pthread_t thread;
	/* shared with the writer's thread and callers */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct follow_file *done;      /* answered, in any order */
	int under_way;
	size_t under_way_bytes;
	uint64_t first_left;
	bool scanned, stopping;
	int scan_code;
	struct err scan_err;
	struct follow_stats stats;
};

#define FOLLOW_GROWS_S 600.0 /* so long after its last growth a file is taken for one that goes on growing */

/* --- follow_note.c: any thread ----------------------------------------------------------------------------- */

void follow_wake(struct follow *f);
void follow_note(struct follow *f, const char *path, const char *text);

/* --- follow_files.c: which files there are ------------------------------------------------------------------- */

/* made when it is new; NULL when out of memory */
struct follow_file *follow_file_of(struct follow *f, const char *path);
void follow_enqueue(struct follow *f, struct follow_file *file, enum follow_turn turn);
/* the one that is wanted soonest; NULL: none is to be read now */
struct follow_file *follow_waiting(const struct follow *f);
struct follow_file *follow_dequeue(struct follow *f);       /* the same, taken out */
void follow_requeue_refused(struct follow *f);
/* what it held at the start is stored, or cannot be */
void follow_first_done(struct follow *f, struct follow_file *file);
void follow_found(void *arg, const struct tree_file *found); /* a tree_found; arg: the follower */

/* From the store, some at a time: the files of runs that changed last, to be looked at before a scan comes to them
 * (f->knows_newest: that was it); then what it knows of all files (f->knows_all). */
int follow_learn_newest(struct follow *f, struct err *err);
int follow_learn_some(struct follow *f, struct err *err);

/* No watch tells of this file: it is to be looked at every so often, at least for_s seconds from now on (INFINITY is
 * fine). */
void follow_glance_at(struct follow *f, struct follow_file *file, double for_s);
void follow_glance(struct follow *f); /* at all of them */

/* --- follow_read.c: reading them --------------------------------------------------------------------------- */

void follow_read(struct follow *f, struct follow_file *file); /* on, unless there is nothing new */
void follow_collect(struct follow *f);                        /* takes the writer's answers */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* follow_inside.h: shared by the follow*.c files: the follower, and its state of each file. All of it belongs to the
 * follower's thread, except what the lock guards. Private to them. */
#ifndef DPT_STORE_FOLLOW_INSIDE_H
#define DPT_STORE_FOLLOW_INSIDE_H

#include <pthread.h>
#include <sys/stat.h>

#include "web/store/follow/follow.h"
#include "web/store/follow/origin.h"
#include "web/store/follow/folder_tree.h"
#include "web/store/write/lease.h"

/* The queue of a file; a file moves to a more urgent queue, never back. */
enum follow_turn {
	FOLLOW_NOWHERE,
	FOLLOW_URGENT, /* just changed */
	FOLLOW_RECENT, /* may grow soon: of a recently changed run, or not watched */
	FOLLOW_REST,
	FOLLOW_REFUSED, /* failed on disk or in the store, until the next retry */
	FOLLOW_TURNS
};

#define FOLLOW_TAIL_BYTES 32 /* they show that a file still has what is stored of it */

/* The bytes in front of the stored offset. */
struct follow_tail {
	bool known;
	unsigned char bytes[FOLLOW_TAIL_BYTES];
};

struct follow_file {
	struct follow *f;
	struct follow_file *next, **back; /* links of its queue; next also links finished files */
	enum follow_turn turn;
	enum follow_turn again; /* the queue requested while a range was in transfer */
	const char *path;
	struct origin origin;
	uint64_t offset; /* stored up to here */
	uint64_t size;	 /* at the last read */
	size_t range;	 /* bytes of the next read */
	bool asked;	 /* offset was read from the store */
	bool under_way;
	size_t sent; /* bytes in transfer */
	bool dead;
	int denied; /* errno with which it, or a folder, could not be opened */
	/* 0: its growth is noticed; else it is polled until then */
	double glance_until_s;
	struct follow_file *next_glance;
	bool gone; /* its run was removed for good: never read again */
	/* of foreign files (follow_sources.c) */
	struct follow_source *source; /* what its content is; NULL: not known */
	uint64_t inode;		      /* at the last look; 0: none yet */
	int64_t time_ns;	      /* of its last change, at the last look */
	struct follow_tail tail;
	unsigned char sent_tail[FOLLOW_TAIL_BYTES]; /* the bytes in front of sent_end */
	uint64_t sent_end;
	bool alias; /* a copy of what its source has: not read */
	uint64_t alias_size;
	double missing_s;   /* since when its content is not here any more; 0: it is here */
	bool changed;	    /* missing: the file has another content */
	uint64_t seen;	    /* the scan that found it last */
	uint64_t dead_size; /* a dead file is read again when its size changes */
	bool first;	    /* found by the first scan, and not read to its end yet */
	int result;	    /* of the last range */
};

/* A run of foreign event files. */
struct follow_run {
	char uuid[ORIGIN_ID_BYTES];
	struct follow_folder *folder; /* whose run it is; NULL: none, or not known */
	struct follow_source *first;
	size_t sources;
	bool gone;    /* has no files any more */
	bool broken;  /* gone, because some of its content was removed: it does not come back */
	bool lost;    /* some of its content was removed: follow_sweep decides */
	bool settled; /* it did, in this sweep */
};

struct follow_folder {
	const char *path;
	struct follow_run *run; /* NULL: none */
};

/* The content of an event file, wherever it is. */
struct follow_source {
	char writer[ORIGIN_ID_BYTES], content[ORIGIN_ID_BYTES]; /* content "": not known yet */
	struct follow_run *run;
	struct follow_file *file, *last; /* where it is (NULL: gone), or was last (NULL: unknown) */
	uint64_t offset;		 /* stored up to here, and the bytes in front of it, while it is gone */
	struct follow_tail tail;
	size_t copies;			   /* other files of its run that have it */
	struct follow_source *same, *next; /* of the same content; of the same run */
};

struct follow_line {
	struct follow_file *first, **end;
};

/* A position in the list of stored files, recently changed runs first. */
struct follow_newest {
	int64_t rev, run, writer;
};

/* What the follower has read of the store. */
struct follow_learned {
	struct follow_newest newest_at; /* the last one read */
	size_t newest_count;
	int64_t row; /* the last row of the table writer read */
	bool knows_newest, knows_all;
};

/* The scan of the folder, and the sweep for missing files after it. */
struct follow_scan {
	struct tree *tree;
	bool running, more_to_see;
	bool recognised; /* found a file that the store knew */
	uint64_t number;
	double began_s, next_s;
	double sweep_at_s; /* 0: no file is missing */
};

/* Which file is read next. */
struct follow_reading {
	struct follow_line lines[FOLLOW_TURNS];
	double retry_at_s;
	struct follow_file *glances; /* files that are polled */
	double next_glance_s;
};

/* Shared with the writer's thread and callers, guarded by lock. */
struct follow_shared {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct follow_file *done; /* ranges answered, in any order */
	int under_way;
	size_t under_way_bytes;
	uint64_t first_left;
	bool scanned, stopping;
	bool unsettled; /* files are missing, and what that means is not decided */
	int scan_code;
	struct err scan_err;
	struct follow_stats stats;
};

struct follow {
	struct store *s;
	char root[PATH_MAX], name[NAME_MAX + 1]; /* name: the last segment of root */
	bool poll_wanted, once;
	double poll_s;
	bool own_store;	   /* the store is in the folder, so it has the paths of no other folder */
	struct map *files; /* path -> struct follow_file */
	struct map *runs, *folders, *sources, *contents; /* follow_sources.c */
	struct follow_learned learned;
	struct follow_scan scan;
	struct follow_reading reading;
	int wake_fd;
	struct lease lease; /* of the folder: one process of a store follows it */
	bool leads;	    /* we had it at the last look */
	pthread_t thread;
	struct follow_shared shared;
};

#define FOLLOW_GROWS_S 600.0 /* a file is expected to grow for this long after its last growth */

/* --- follow_files.c: the known files -------------------------------------------------------------------------- */

void follow_wake(struct follow *f);					/* any thread */
void follow_note(struct follow *f, const char *path, const char *text); /* any thread: sets the status line */

/* adds it if new */
struct follow_file *follow_file_of(struct follow *f, const char *path);
void follow_enqueue(struct follow *f, struct follow_file *file, enum follow_turn turn);
/* the most urgent file; NULL: none to read now */
struct follow_file *follow_waiting(const struct follow *f);
struct follow_file *follow_dequeue(struct follow *f); /* the same, removed from its queue */
void follow_requeue_refused(struct follow *f);
/* its content at the start is stored, or cannot be */
void follow_first_done(struct follow *f, struct follow_file *file);

/* A path below the root. */
int follow_open_file(const struct follow *f, const char *path);			   /* -1: failed */
bool follow_stat_file(const struct follow *f, const char *path, struct stat *ret); /* false: no regular file */

bool follow_same_bytes(int fd, int other_fd, uint64_t n); /* compares the first n bytes */

/* Polls a file that no watch covers, for at least for_s seconds (may be INFINITY). */
void follow_glance_at(struct follow *f, struct follow_file *file, double for_s);
void follow_glance(struct follow *f); /* polls all of them */

/* --- follow_sources.c: which run a foreign file is, by its content --- */

void follow_sources_init(struct follow *f);
void follow_sources_free(struct follow *f);

/* A writer of the store, whose file is at file->path; file NULL: it is gone. */
void follow_source_learn(struct follow *f, struct follow_file *file, const char *run, const char *writer,
			 uint64_t durable);

/* Decides what a foreign file without a source is; its origin has its content. Returns true if it is to be read
 * now. */
bool follow_place(struct follow *f, struct follow_file *file, const struct stat *sb);

/* Returns true if the file still has the content of its source. If not, follow_sweep decides. */
bool follow_same(struct follow *f, struct follow_file *file, const char *content, const struct stat *sb, int fd);

void follow_missing(struct follow *f, struct follow_file *file); /* its content may not be there any more */
void follow_missing_unseen(struct follow *f);			 /* the same for all that the last scan did not find */

/* Forgets what the file was. */
void follow_forget_file(struct follow_file *file);

/* The content of s is at file from now on, and is continued there. copy: the file that had it still does, as a copy. */
void follow_take_source(struct follow *f, struct follow_source *s, struct follow_file *file, bool copy);

/* Another file of its run that has a copy of the content; NULL: none. */
struct follow_file *follow_find_copy(struct follow *f, const struct follow_source *s);

/* The content of s is nowhere. */
void follow_lose_source(struct follow_source *s);

/* Changes the store. Commands wait, because they read the store next. */
void follow_submit_source(struct follow *f, const struct ingest_op *op);

/* --- follow_sweep.c -------------------------------------------------------------------------------------------- */

/* Decides about the missing files: moved, a copy that vanished, or content that is gone. */
void follow_sweep(struct follow *f);

/* --- follow_read.c: reading ----------------------------------------------------------------------------------- */

/* Reports once that a file or folder cannot be opened. */
void follow_denied(struct follow *f, struct follow_file *file, int why);

void follow_read(struct follow *f, struct follow_file *file); /* reads what is new */
void follow_collect(struct follow *f);			      /* handles the writer's answers */

#endif

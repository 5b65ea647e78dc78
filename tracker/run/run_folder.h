/* SPDX-License-Identifier: Apache-2.0 */
/* run_folder.h: a run's folder below the runs folder: creates it, or finds it by the run's id; ids and names. */
#ifndef DPT_RUN_RUN_FOLDER_H
#define DPT_RUN_RUN_FOLDER_H

#include "tracker/base/arena.h"
#include "tracker/base/file.h"
#include "tracker/event/event.h"

#define NAMES_ID_BYTES 33 /* 32 hex digits and NUL */

int names_draw_id(char ret[NAMES_ID_BYTES]); /* 0 or ERR_IO */
bool names_is_id(const char *id);

/* Two words and a number, derived from the id. */
void names_from_id(char ret[FILE_NAME_BYTES], const char *id);

/* This machine's name, valid in a file name. */
void names_host(char ret[FILE_NAME_BYTES]);

struct run_folder_opts {
	const char *runs_dir;
	const char *experiment;
	const char *run_name;
	const char *run_id;
	bool must_exist; /* find it by run_id alone; experiment and run_name may be NULL */
};

struct run_folder {
	const char *dir;
	const char *experiment; /* from the run's first journal, if there is one */
	const char *run_name;
	int newest_segment; /* -1 without a journal */
};

/* Opens the folder of a run. Texts of *ret are stored in the arena. */
int run_folder_open(struct run_folder *ret, struct arena *arena, const struct run_folder_opts *opts, struct err *err);

/* Finds the newest run: of run_name in the experiment, or, without a name, in runs_dir or its folders (run_id is
 * ignored). Newest: its first journal was started last. With run_id and must_exist finds the run of that id. ret_id:
 * NAMES_ID_BYTES. Returns ERR_NOENT if no run matches. Creates nothing. */
int run_folder_find(struct run_folder *ret, char *ret_id, struct arena *arena, const struct run_folder_opts *opts,
		    struct err *err);

struct journal_file {
	const char *path;
	uint64_t bytes;
	double started_s; /* wall time of its first record */
	const struct event_header *header;
};

/* Calls visit for each journal in dir of the run (NULL: of any run); returns true if there is one. */
typedef void run_folder_visit(void *user, const struct journal_file *f);
bool run_folder_journals(const char *dir, const char *run_id, run_folder_visit *visit, void *user);

#endif

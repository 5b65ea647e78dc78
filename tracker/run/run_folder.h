/* run_folder.h: a run's folder below the runs folder: makes it, or finds it again by the run's id. */
#ifndef DPT_RUN_RUN_FOLDER_H
#define DPT_RUN_RUN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct run_folder_opts {
	const char *runs_dir;
	const char *experiment;
	const char *run_name;
	const char *run_id;
	bool must_exist; /* find it by run_id alone; experiment and run_name may be NULL */
};

struct run_folder {
	const char *dir;
	const char *experiment; /* as the run's first journal says, where there is one */
	const char *run_name;
	int newest_segment; /* -1 while no journal is there */
};

/* Texts of *ret live in the arena. */
int run_folder_open(struct run_folder *ret, struct arena *arena, const struct run_folder_opts *opts, struct err *err);

/* The run of that name in the experiment whose first journal was begun last, without a name whichever lies in runs_dir
 * or a folder of it (run_id does not count); or with run_id and must_exist the run of that id. ret_id: NAMES_ID_BYTES.
 * ERR_NOENT when there is none. Makes nothing. */
int run_folder_find(struct run_folder *ret, char *ret_id, struct arena *arena, const struct run_folder_opts *opts, struct err *err);

/* Calls found for each journal of the run in dir, with the file's size. */
void run_folder_journals(const char *dir, const char *run_id,
		     void (*found)(void *user, const char *path, const char *writer_id, uint64_t bytes), void *user);

#endif

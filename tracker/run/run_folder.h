/* run_folder.h: a run's folder below the runs folder: creates it, or finds it by the run's id. */
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

/* Calls found for each journal of the run in dir, with the file's size. */
void run_folder_journals(const char *dir, const char *run_id,
		     void (*found)(void *user, const char *path, const char *writer_id, uint64_t bytes), void *user);

#endif

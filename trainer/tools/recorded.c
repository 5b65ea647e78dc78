/* recorded.c: finds the run that a job has recorded. */
#include "trainer/tools/recorded.h"

int recorded_run(const struct job *job, const char *run_id, struct dptrack_found *ret, struct err *err)
{
	const struct dptrack_run_opts o = { .runs_dir = job->cfg->runs_dir, .run_id = run_id };
	struct dptrack_error error = { 0, "" };

	if (dptrack_find(ret, &o, &error))
		return err_set(err, ERR_IO, "cannot find the recorded run: %s", error.text);
	return 0;
}

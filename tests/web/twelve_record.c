/* SPDX-License-Identifier: Apache-2.0 */
/* twelve_record.c: records through libdptrack the runs that twelve.py writes to standard input, one line per item:
 *   run NAME | param KEY VALUE | number KEY VALUE | point KEY STEP TIME VALUE | note TEXT | end finished|failed
 * Usage: twelve_record RUNS-DIR. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/dptrack.h"

#define WORD "%255s"

static struct dptrack_run *begin(const char *runs_dir, const char *name)
{
	struct dptrack_error error;
	struct dptrack_run *run;

	if (!dptrack_run_open(&run, &(struct dptrack_run_opts){ .runs_dir = runs_dir, .experiment = "fashion",
								.run_name = name, .url = "" }, &error))
		return run;
	fprintf(stderr, "twelve_record: %s\n", error.text);
	exit(1);
}

static int record(struct dptrack_run *run, const char *line)
{
	char key[256], text[256];
	int64_t step;
	double at, value;

	if (sscanf(line, "param " WORD " " WORD, key, text) == 2)
		return dptrack_param(run, key, text);
	if (sscanf(line, "number " WORD " %lf", key, &value) == 2)
		return dptrack_param_f64(run, key, value);
	if (sscanf(line, "point " WORD " %" SCNd64 " %lf %lf", key, &step, &at, &value) == 4)
		return dptrack_log_at(run, -1, step, key, value, at);
	if (!strncmp(line, "note ", 5))
		return dptrack_note(run, line + 5);
	return -1;
}

int main(int argc, char **argv)
{
	struct dptrack_run *run = NULL;
	char line[4096];
	int rc = argc == 2 ? 0 : -1;

	while (!rc && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "run ", 4)) {
			run = begin(argv[1], line + 4);
		} else if (!strncmp(line, "end ", 4)) {
			rc = dptrack_run_close(run, strcmp(line + 4, "failed") ? DPTRACK_FINISHED : DPTRACK_FAILED);
			run = NULL;
		} else {
			rc = record(run, line);
		}
		if (rc)
			fprintf(stderr, "twelve_record: cannot record: %s\n", line);
	}
	return rc ? 1 : 0;
}

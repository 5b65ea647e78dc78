/* SPDX-License-Identifier: Apache-2.0 */
/* twenty_lines.c: all that a program outside this tree needs to record a run. */
#include <dptrack.h>
#include <stdio.h>

int main(void)
{
	struct dptrack_run *run;
	struct dptrack_error error;

	if (dptrack_run_open(&run, &(struct dptrack_run_opts){ .experiment = "outside", .run_name = "twenty" },
			     &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	dptrack_param_f64(run, "lr", 0.1);
	for (int step = 1; step <= 100; step++)
		dptrack_log(run, step, "train/loss", 1.0 / step);
	return dptrack_run_close(run, DPTRACK_FINISHED) != 0;
}

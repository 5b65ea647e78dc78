/* SPDX-License-Identifier: Apache-2.0 */
/* told_many.c: records one run of two ranks with very many records, for tests/bench/page --shows: distinct pictures,
 * console output with progress bars, and a metric. Usage: told_many RUNS-DIR PICTURES LINES. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/dptrack.h"

enum { RANKS = 2, FLUSH_EVERY = 1000, MOST = 10000000 };

static const double wait_s = 60;

/* Logs a GIF of one pixel in a colour that no other step uses. */
static int log_picture(struct dptrack_run *run, int step)
{
	unsigned char gif[] = { 'G', 'I', 'F', '8', '9', 'a', 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff,
				0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b };

	gif[13] = (unsigned char)(step >> 16);
	gif[14] = (unsigned char)(step >> 8);
	gif[15] = (unsigned char)step;
	return dptrack_image(run, step, "seen/picture", &(struct dptrack_bytes){ gif, sizeof(gif) }, 1, 1) |
	       dptrack_log_at(run, -1, step, "train/loss", 1.0 / (step + 1), 1.7e9 + step);
}

static int log_line(struct dptrack_run *run, int line)
{
	char text[128];
	int n;

	if (line % 10 == 9)
		n = snprintf(text, sizeof(text), "\r%3d%%|####      | %d/1000000 [00:10<00:20, 98.1it/s]\n",
			     line / 10000, line);
	else
		n = snprintf(text, sizeof(text), "step %d: loss %.6f, lr 0.1%s\n", line, 1.0 / (line + 1),
			     line == 700001 ? ", needle" : "");
	return dptrack_console(run, 1, text, (size_t)n);
}

static int record_rank(const char *runs, const char *id, int rank, int pictures, int lines)
{
	struct dptrack_error error;
	struct dptrack_run *run;
	int rc = dptrack_run_open(&run, &(struct dptrack_run_opts){ .runs_dir = runs, .experiment = "told",
		.run_name = "many", .run_id = id, .rank = rank, .world_size = RANKS, .url = "" }, &error), i;

	if (rc) {
		fprintf(stderr, "%s\n", error.text);
		return rc;
	}
	for (i = 0; i < pictures || i < lines; i++) {
		rc |= i < pictures && rank == 0 ? log_picture(run, i) : 0;
		rc |= i < lines ? log_line(run, i) : 0;
		if (i % FLUSH_EVERY == FLUSH_EVERY - 1)
			rc |= dptrack_flush(run, wait_s);
	}
	return rc | dptrack_run_close(run, DPTRACK_FINISHED);
}

/* Returns -1 if the text is not a number. */
static int number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text && !*end && n >= 0 && n <= MOST ? (int)n : -1;
}

int main(int argc, char **argv)
{
	char id[33];
	int pictures = argc == 4 ? number(argv[2]) : -1, lines = argc == 4 ? number(argv[3]) : -1, rc, rank;

	if (pictures < 0 || lines < 0)
		return 2;
	rc = dptrack_draw_id(id);
	for (rank = 0; !rc && rank < RANKS; rank++)
		rc = record_rank(argv[1], id, rank, pictures, lines / RANKS);
	return rc ? 1 : 0;
}

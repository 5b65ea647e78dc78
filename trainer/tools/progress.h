/* progress.h: progress of a long task: a line on stderr every PROGRESS_S seconds; a shorter task prints nothing. */
#ifndef DPT_TOOLS_PROGRESS_H
#define DPT_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_S 5

struct progress {
	double begun_s, said_s; /* clock_mono_s */
};

void progress_begin(struct progress *p);

/* Returns true if it is time for a line. */
bool progress_due(struct progress *p);

/* Prints a line if it is time: "120000 of 1281167 training samples, ETA 0:00:42". whole >= done. */
void progress_say(struct progress *p, int64_t done, int64_t whole, const char *what);

#endif

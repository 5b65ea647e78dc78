/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c: width of a terminal, and a line of progress with an estimate. */
#include "tracker/base/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/utf8.h"

#define QUIET_S 2.0    /* what is done by then needs no progress */
#define REFRESH_S 0.2
#define COLUMNS_MAX 1000

int terminal_columns(int fd, int fallback)
{
	const char *variable = getenv("COLUMNS");
	struct winsize size;
	char *end;
	long n;

	if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	n = variable ? strtol(variable, &end, 10) : 0;
	return n > 0 && n <= COLUMNS_MAX && !*end ? (int)n : fallback;
}

int terminal_help_columns(int fallback)
{
	const int n = terminal_columns(STDOUT_FILENO, fallback);

	return n < 60 ? 60 : n > 120 ? 120 : n;
}

void terminal_progress_begin(struct terminal_progress *p, const char *what, uint64_t total)
{
	*p = (struct terminal_progress){ .what = isatty(STDERR_FILENO) ? what : NULL, .total = total };
	p->start_s = p->what ? clock_mono_s() : 0;
}

/* Formats a duration: "45 s", "12 min", "3 h 20 min". */
static void format_estimate(char *text, size_t n, double s)
{
	if (s < 100)
		snprintf(text, n, "%.0f s", s);
	else if (s < 6000)
		snprintf(text, n, "%.0f min", s / 60);
	else
		snprintf(text, n, "%d h %02d min", (int)(s / 3600), (int)(s / 60) % 60);
}

void terminal_progress_show(struct terminal_progress *p, uint64_t done, const char *detail)
{
	const double now = p->what ? clock_mono_s() : 0, took = now - p->start_s;
	char line[300], fitted[300], left[40] = "";
	int columns;

	if (!p->what || took < QUIET_S || now - p->shown_s < REFRESH_S)
		return;
	if (p->total && done && done <= p->total) {
		format_estimate(left, sizeof(left), took / (double)done * (double)(p->total - done));
		snprintf(line, sizeof(line), "%s: %llu of %llu (%.0f %%), about %s left%s%s", p->what,
			 (unsigned long long)done, (unsigned long long)p->total,
			 100 * (double)done / (double)p->total, left, detail ? ": " : "", detail ? detail : "");
	} else {
		format_estimate(left, sizeof(left), took);
		snprintf(line, sizeof(line), "%s: %llu after %s%s%s", p->what, (unsigned long long)done, left,
			 detail ? ": " : "", detail ? detail : "");
	}
	columns = terminal_columns(STDERR_FILENO, 80) - 1;
	for (char *c = line; *c; c++) /* names of others cannot move the cursor */
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = ' ';
	utf8_copy(fitted, columns > 0 && columns < (int)sizeof(fitted) ? (size_t)columns : sizeof(fitted), line,
		  strlen(line), NULL);
	fprintf(stderr, "\r%s\033[K", fitted);
	fflush(stderr);
	p->shown = true;
	p->shown_s = now;
}

void terminal_progress_clear(struct terminal_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

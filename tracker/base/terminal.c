/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c: width of a terminal, and progress of a long task. */
#include "tracker/base/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"

#define QUIET_S 2.0 /* what is done by then needs no progress */
#define REFRESH_S 0.2
#define LOG_LINE_S 30.0 /* between the lines of a log */
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

void terminal_progress_begin(struct terminal_progress *p, const char *what, uint64_t whole)
{
	const double now = clock_mono_s();

	*p = (struct terminal_progress){ .what = what, .whole = whole, .start_s = now };
	p->terminal = isatty(STDERR_FILENO);
	p->shown_s = p->terminal ? 0 : now;
}

/* Formats a duration: "45 s", "12 min", "3 h 20 min". */
static void format_duration(char *text, size_t n, double s)
{
	if (s < 100)
		snprintf(text, n, "%.0f s", s);
	else if (s < 6000)
		snprintf(text, n, "%.0f min", s / 60);
	else
		snprintf(text, n, "%d h %02d min", (int)(s / 3600), (int)(s / 60) % 60);
}

/* Appends " of WHOLE, about DURATION left": the rest takes as long for each as what is done. */
static void append_estimate(char *line, size_t n, const struct terminal_progress *p, uint64_t done, double took)
{
	const size_t used = strlen(line);
	char duration[40];

	if (!p->whole || !done || done > p->whole)
		return;
	format_duration(duration, sizeof(duration), took / (double)done * (double)(p->whole - done));
	snprintf(line + used, n - used, ", about %s left", duration);
}

/* Formats "runs imported: 12 of 40 after 3 s, about 7 s left". */
static void format_progress(char *line, size_t n, const struct terminal_progress *p, uint64_t done, double took)
{
	char duration[40], whole[32] = "";

	if (p->whole)
		snprintf(whole, sizeof(whole), " of %llu", (unsigned long long)p->whole);
	format_duration(duration, sizeof(duration), took);
	snprintf(line, n, "%s: %llu%s after %s", p->what, (unsigned long long)done, whole, duration);
	append_estimate(line, n, p, done, took);
}

void terminal_progress_show(struct terminal_progress *p, uint64_t done)
{
	const double now = clock_mono_s(), took = now - p->start_s;
	char line[160];

	if (took < QUIET_S || now - p->shown_s < (p->terminal ? REFRESH_S : LOG_LINE_S))
		return;
	p->shown_s = now;
	format_progress(line, sizeof(line), p, done, took);
	if (!p->terminal) {
		log_info("%s", line);
		return;
	}
	fprintf(stderr, "\r%.*s\033[K", terminal_columns(STDERR_FILENO, 80) - 1, line);
	fflush(stderr);
	p->shown = true;
}

void terminal_progress_clear(struct terminal_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

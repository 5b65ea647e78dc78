/* SPDX-License-Identifier: Apache-2.0 */
/* log.c: prints lines on stderr. The program's name is set once, before threads start. */
#include "tracker/base/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/utf8.h"

static const char *log_program = "dptrack";
static const char *log_line_start = ""; /* on a terminal: replaces a line of progress, or the ^C after it */

/* If the parent closed a standard descriptor, the next file that is opened (a journal, a database) would get its
 * number. */
static void open_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void log_init(const char *program)
{
	open_standard_files();
	log_program = program;
	log_line_start = isatty(STDERR_FILENO) ? "\r\033[K" : "";
}

/* A message may quote what a client or a file named: it must neither begin a line nor move a terminal's cursor. */
static void log_line(const char *kind, const char *fmt, va_list ap)
{
	char text[1024], line[1024];
	size_t used;
	int n;

	n = snprintf(line, sizeof(line), "%s%s: %s", log_line_start, log_program, kind);
	used = n < 0 ? 0 : (size_t)n;
	vsnprintf(text, sizeof(text), fmt, ap);
	used += utf8_escape(line + used, sizeof(line) - used - 1, text);
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		return; /* stderr is gone */
}

#define LOG_FUNCTION(name, kind)                                                                                       \
	void name(const char *fmt, ...)                                                                                \
	{                                                                                                              \
		va_list ap;                                                                                            \
                                                                                                                       \
		va_start(ap, fmt);                                                                                     \
		log_line(kind, fmt, ap);                                                                               \
		va_end(ap);                                                                                            \
	}

LOG_FUNCTION(log_error, "error: ")
LOG_FUNCTION(log_warn, "warning: ")
LOG_FUNCTION(log_info, "")

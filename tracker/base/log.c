/* log.c: lines on stderr. Program name and level are set once, before threads start. */
#include "tracker/base/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
	const char *program;
	enum log_level level;
} log_state = { "dptrack", LOG_INFO };

/* One that was closed by whoever started the program would be the next file that is opened: a journal, a database. */
static void open_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void log_init(const char *program, enum log_level level)
{
	open_standard_files();
	log_state.program = program;
	log_state.level = level;
}

static void log_line(enum log_level level, const char *kind, const char *fmt, va_list ap)
{
	char line[1024];
	int n;
	size_t used;

	if (level > log_state.level)
		return;
	n = snprintf(line, sizeof(line), "%s: %s", log_state.program, kind);
	used = n < 0 ? 0 : (size_t)n;
	vsnprintf(line + used, sizeof(line) - used - 1, fmt, ap);
	used = strlen(line);
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		return; /* nowhere left to say it */
}

#define LOG_FUNCTION(name, level, kind)         \
	void name(const char *fmt, ...)         \
	{                                       \
		va_list ap;                     \
						\
		va_start(ap, fmt);              \
		log_line(level, kind, fmt, ap); \
		va_end(ap);                     \
	}

LOG_FUNCTION(log_error, LOG_ERROR, "error: ")
LOG_FUNCTION(log_warn, LOG_WARN, "warning: ")
LOG_FUNCTION(log_info, LOG_INFO, "")
LOG_FUNCTION(log_debug, LOG_DEBUG, "debug: ")

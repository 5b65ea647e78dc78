/* log.h: the one place that prints for people: lines on stderr, "program: text". Only programs call it (main.c,
 * web/cli, the launcher); libraries fill struct err instead. Thread-safe; one write(2) a line. */
#ifndef DPT_BASE_LOG_H
#define DPT_BASE_LOG_H

enum log_level { LOG_QUIET, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_init(const char *program, enum log_level level); /* program is borrowed for ever */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif

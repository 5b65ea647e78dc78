/* SPDX-License-Identifier: Apache-2.0 */
/* log.h: the one place that prints for people: lines on stderr, "program: text". Only programs call it (main.c,
 * web/cli, the launcher); libraries fill struct err instead. Thread-safe; one write(2) per line. */
#ifndef DPT_BASE_LOG_H
#define DPT_BASE_LOG_H

void log_init(const char *program); /* program must stay valid */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif

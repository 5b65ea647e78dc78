/* SPDX-License-Identifier: Apache-2.0 */
/* err.c: formats errors. Independent of who prints them. */
#include "tracker/base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	e->field[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

int err_set_errno(struct err *e, int errno_value, const char *fmt, ...)
{
#ifdef __GLIBC__
	char text[128];
	const char *reason = strerror_r(errno_value, text, sizeof(text));
#else
	const char *reason = strerror(errno_value); /* musl's texts are constants */
#endif
	size_t used;
	va_list ap;
	int code = ERR_IO;

	if (errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EFBIG)
		code = ERR_NOSPC;
	else if (errno_value == ENOENT)
		code = ERR_NOENT;
	else if (errno_value == ENOMEM)
		code = ERR_NOMEM;
	if (!e)
		return code;
	e->code = code;
	e->field[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text) - strlen(": ") - strlen(reason), fmt, ap);
	va_end(ap);
	used = strlen(e->text);
	snprintf(e->text + used, sizeof(e->text) - used, ": %s", reason);
	return code;
}

int err_nomem(struct err *e, const char *what)
{
	return err_set(e, ERR_NOMEM, "out of memory%s%s", what ? ": " : "", what ? what : "");
}

int err_field(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return 0;
	va_start(ap, fmt);
	vsnprintf(e->field, sizeof(e->field), fmt, ap);
	va_end(ap);
	return e->code;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
	char rest[sizeof(e->text)];
	size_t used;
	va_list ap;

	if (!e)
		return 0;
	memcpy(rest, e->text, sizeof(rest));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	used = strlen(e->text);
	snprintf(e->text + used, sizeof(e->text) - used, ": %s", rest);
	return e->code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* err.h: an error, filled once where the cause is known and passed upwards unchanged. Functions that can fail return 0
 * or a negative ERR_* code and fill the caller's struct err. */
#ifndef DPT_BASE_ERR_H
#define DPT_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum err_code {
	ERR_OK = 0,
	ERR_USAGE = -1,	 /* bad flag, value or input file: exit code 2 */
	ERR_NOENT = -2,	 /* the named item does not exist */
	ERR_EXISTS = -3, /* the item to create exists already, or contradicts an existing one */
	ERR_NOMEM = -4,
	ERR_IO = -5,	  /* the system refused a read, write, open, … */
	ERR_NOSPC = -6,	  /* the disk is full, or a quota or limit of sizes is reached */
	ERR_CORRUPT = -7, /* bytes of an input do not follow their format */
	ERR_LIMIT = -8,	  /* a maximum of schema/event/limits.def is exceeded */
	ERR_UNSUPPORTED = -9,
	ERR_PEER = -10, /* another rank or host failed */
	ERR_BUSY = -11, /* held by another process */
	ERR_CANCELED = -12,
	ERR_GONE = -13,	   /* existed, and was removed for good */
	ERR_DAMAGED = -14, /* data of the store is lost or damaged: not the fault of the client */
	ERR_DENIED = -15,  /* the caller may not do this */
};

struct err {
	int code;	/* enum err_code; 0: no failure */
	char text[504]; /* one line: what, where, what to do; never ends in a newline */
	char field[80]; /* the wrong member or argument of a request ("points[3].key"); "": none */
};

#define ERR_INIT { .code = 0 }

/* Fills e (NULL is fine) and returns code, so that callers can `return err_set(...)`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, with ": " and the text of errno_value appended, which is never truncated. ENOSPC, EDQUOT and EFBIG become
 * ERR_NOSPC. */
int err_set_errno(struct err *e, int errno_value, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Sets "out of memory: what" (what may be NULL) and returns ERR_NOMEM. */
int err_nomem(struct err *e, const char *what);

/* Sets the field of an error that is already set; returns its code. err_set clears the field. */
int err_field(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " in front of the text of an error that is already set; returns its code. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

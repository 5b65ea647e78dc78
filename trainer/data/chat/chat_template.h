/* SPDX-License-Identifier: Apache-2.0 */
/* chat_template.h: the subset of Jinja that chat templates use, as Hugging Face's transformers render them (trim_blocks
 * and lstrip_blocks). A template sees values alone: no files, no clock but the given date, and bounded steps, output
 * and nesting. Immutable once open, so thread-safe. */
#ifndef DPT_DATA_CHAT_TEMPLATE_H
#define DPT_DATA_CHAT_TEMPLATE_H

#include <jansson.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct chat_template;

/* name: for messages. ERR_USAGE: "NAME:LINE: …" names a construct that is unknown or damaged. */
int chat_template_new(struct chat_template **ret, const char *name, const char *text, size_t n, struct err *err);
void chat_template_free(struct chat_template *t); /* NULL is fine */

struct chat_span { /* bytes of the output */
	size_t begin, end;
};

struct chat_rendering {
	struct buf text;  /* initialised by the caller; replaced */
	struct buf spans; /* … struct chat_span each: what {% generation %} encloses, in order */
};

/* Renders with the members of an object as variables. time: for strftime_now, seconds since 1970 UTC. ERR_USAGE: the
 * template raises an exception, computes with values that it cannot, or exceeds 10^6 steps or 16 MiB. One thread at a
 * time uses the values. */
int chat_template_render(const struct chat_template *t, json_t *variables, double time, struct chat_rendering *ret,
			 struct err *err);

#endif

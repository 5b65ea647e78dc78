/* SPDX-License-Identifier: Apache-2.0 */
/* text_change.h: the changes that a tokenizer makes to a text before it splits it: normal forms, replacements and
 * prefixes. Each byte of a changed text knows where its origin ends, so that tokens are found again in the original. */
#ifndef DPT_DATA_TEXT_CHANGE_H
#define DPT_DATA_TEXT_CHANGE_H

#include "tracker/base/buf.h"
#include "trainer/data/tokenizer/text_pattern.h"

enum text_change_kind {
	CHANGE_NFC,
	CHANGE_NFD,
	CHANGE_NFKC,
	CHANGE_NFKD,
	CHANGE_REPLACE,
	CHANGE_PREPEND,	    /* every text that is not empty */
	CHANGE_BEGIN,	    /* … that does not begin with the prefix */
	CHANGE_BEGIN_FIRST, /* … at the beginning of a document */
};

struct text_change {
	enum text_change_kind kind;
	struct text_pattern *pattern; /* to replace */
	const char *content;	      /* replacement or prefix; n bytes, borrowed */
	size_t n;
};

struct text_view { /* valid UTF-8 */
	const char *text;
	size_t n;
	const uint32_t *origin; /* [byte]: end of its origin in the document; NULL: base + byte + 1 */
	size_t base;
	bool first, continues; /* it begins the document; it continues a text, so nothing is put in front of it */
};

struct text_changing { /* working memory of one thread */
	struct buf text[2], origin[2];
	int next;     /* buffers to write */
	bool origins; /* fill origin; otherwise it stays NULL */
	size_t max;   /* bytes of a changed text */
	struct text_matcher *matcher;
};

void text_changing_init(struct text_changing *to, struct text_matcher *matcher); /* matcher: borrowed */
void text_changing_done(struct text_changing *to);

/* Applies a change; *v then refers to memory of `to`, which the change after the next one overwrites. ERR_USAGE: a
 * pattern needs too many steps, or the text becomes too large; ERR_NOMEM. */
int text_change_apply(const struct text_change *c, struct text_changing *to, struct text_view *v, struct err *err);

#endif

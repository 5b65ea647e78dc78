/* SPDX-License-Identifier: Apache-2.0 */
/* share.h: links that show one thing of an experiment to everybody who has them. A link is a row of tokens whose text
 * is its secret, of scope read, with the grants of its experiment alone; so it ends, and is revoked, as a token is.
 * What the session of a link may ask is decided by web/api/native/api_shares.c. Any thread. */
#ifndef DPT_STORE_SHARE_H
#define DPT_STORE_SHARE_H

#include "web/store/auth/token.h"

enum share_kind { SHARE_RUN, SHARE_COMPARISON, SHARE_VIEW, SHARE_REPORT, SHARE_KINDS };

#define SHARE_ID_MAX 17
#define SHARE_TARGETS_MAX 100

/* Texts are never NULL. */
struct share {
	const char *id; /* 16 hex digits */
	enum share_kind kind;
	const char *const *target; /* ids of runs; the number of a view or report */
	size_t target_count;
	const char *person, *name; /* who made it; of what it shows */
	int64_t experiment_id;
	const char *experiment; /* its name now; "": it is gone */
	int64_t created_ms, expires_ms;
	int64_t revoked_ms, used_ms; /* INT64_MIN: valid; never opened */
};

const char *share_kind_name(enum share_kind kind); /* run, comparison, view, report */
bool share_kind_read(const char *word, enum share_kind *ret);

/* Reads kind, target, person and name from struct token_try's share, into the arena. */
void share_parse(struct share *ret, struct arena *a, const char *text);

/* The links of the experiments of which the caller is an admin, newest first, with those that ended in the last 90
 * days. */
int share_list(struct store *s, struct arena *a, struct share **ret, size_t *ret_count, struct err *err);

/* The link with this secret, by its hash. Reads the whole store. ERR_NOENT without a text: none. */
int share_find(struct store *s, const char *hash, struct arena *a, struct share *ret, struct err *err);

/* For share_change_new. Only id, kind, target, person, name, experiment and expires_ms of share are used. */
struct share_new {
	struct share share;
	const char *hash; /* of the secret */
};

#endif

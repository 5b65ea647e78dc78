/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h: the log of who changed what. Entries are numbered from 1 and only ever added, in the transaction of the
 * change that they describe. Each has a hash over its own text and the hash of the entry before it, so that a changed,
 * removed or inserted entry shows; the last one's is stored a second time, so that entries missing at the end show.
 *
 * The hash is SHA-256, in lower-case hex, over HASH TEXT, where HASH is the hash of the entry before (AUDIT_NO_HASH for
 * the first) and TEXT the fields seq, time_ms, via, author, action, object, id, name, experiment and detail in this
 * order, each as LENGTH:BYTES, with the length in bytes and numbers in decimal (https://cr.yp.to/proto/netstrings.txt).
 * Someone who may write to the database can write a new chain: compare it with a hash that was exported before. */
#ifndef DPT_STORE_AUDIT_H
#define DPT_STORE_AUDIT_H

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

#define AUDIT_HASH_MAX 65
#define AUDIT_NO_HASH "0000000000000000000000000000000000000000000000000000000000000000"

struct db;
struct store;

/* No text is NULL. */
struct audit_entry {
	int64_t seq, time_ms;
	const char *via; /* how the author is known: token, environment, command, open (not at all), server (itself) */
	const char *author; /* person of the token; of a command, the user of the operating system; "": unknown */
	const char *action; /* create, rename, …: a verb */
	const char *object; /* what was changed: run, experiment, …: a noun */
	const char *id, *name, *experiment; /* of the object; "": it has none */
	const char *detail;		    /* what the other members do not say, in words; "": nothing */
	const char *hash;
};

/* The last entry at some time; seq 0: none. */
struct audit_head {
	int64_t seq;
	char hash[AUDIT_HASH_MAX];
};

/* Adds n entries and fills their seq and hash. Writer's thread, inside its transaction. With other writers, their
 * entries wait from here until the commit: the chain is one. Texts must be valid UTF-8 (audit_text). */
int audit_append(struct db *d, struct audit_entry *list, size_t n, struct err *err);

/* A copy that an entry may have: valid UTF-8, at most AUDIT_TEXT_MAX - 1 bytes. NULL becomes "". */
#define AUDIT_TEXT_MAX 2048
const char *audit_text(struct arena *a, const char *text);

/* Follows the chain: *head is the entry before e (seq 0 and AUDIT_NO_HASH at the begin), and becomes e. ERR_CORRUPT: an
 * entry is missing, or e was changed; *head is unchanged. */
int audit_follow(struct audit_head *head, const struct audit_entry *e, struct err *err);

/* Who made an object and who changed it last, as far as the log knows: NULL, INT64_MIN. */
struct audit_authors {
	const char *created_by, *changed_by;
	int64_t changed_ms;
};

/* Of n objects of one kind (run, view, …) by their ids in the log, in the arena; name: of a model, whose versions have
 * the same ids as those of others, else "". The caller may see the objects. */
struct audit_objects {
	const char *object, *name;
	const char *const *ids;
	size_t count;
};

int audit_authors(struct store *s, const struct audit_objects *o, struct arena *a, struct audit_authors *ret,
		  struct err *err);

struct audit_select {
	const char *author, *action, *object, *id, *experiment; /* "": any */
	int64_t from_ms, until_ms;				/* until_ms is excluded */
	int64_t after, before;					/* only entries between these numbers */
	bool oldest_first;
	size_t limit;
};

struct audit_list {
	struct audit_entry *items;
	size_t count;
	bool more;		/* there are more than limit */
	struct audit_head head; /* of the whole log, in the same snapshot */
};

/* Any thread. */
int audit_list(struct store *s, const struct audit_select *sel, struct arena *a, struct audit_list *ret,
	       struct err *err);

#endif

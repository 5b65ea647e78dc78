/* same_flags.c: compares a hash of all flags first; only where hashes differ do two ranks exchange their flags. */
#include "trainer/program/same_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/sha256.h"

#define FLAGS_BYTES_MAX ((size_t)1 << 20)

/* Appends "name\0value\0" for each flag that must be the same everywhere. */
static void add_shared_flag(void *user, const struct config_item *item)
{
	if (item->traits & CONFIG_LOCAL)
		return;
	buf_add(user, item->name, strlen(item->name) + 1);
	buf_add(user, item->value, strlen(item->value) + 1);
}

struct flag_text { /* "name\0value\0" of every shared flag of one rank */
	char *text;
	size_t n;
};

/* Copies the text of one rank in the last round and terminates it. Its text is NULL when memory runs out. */
static struct flag_text copy_rank_text(const struct bootstrap *x, int rank)
{
	struct flag_text t;
	const void *said = bootstrap_said(x, rank, &t.n);

	t.text = calloc(t.n + 2, 1);
	if (t.text)
		memcpy(t.text, said, t.n);
	return t;
}

/* Fails with the first flag that rank 0 and the other rank have differently. */
static int describe_flag_difference(struct flag_text first, struct flag_text other, int rank, struct err *err)
{
	size_t a = 0, b = 0;

	while (a < first.n && b < other.n) {
		const char *name = first.text + a, *value = name + strlen(name) + 1;
		const char *theirs = other.text + b, *their_value = theirs + strlen(theirs) + 1;
		char flag[64];

		if (strcmp(name, theirs))
			break;
		snprintf(flag, sizeof(flag), "--%s", name);
		for (char *p = flag; *p; p++)
			*p = *p == '_' ? '-' : *p;
		if (strcmp(value, their_value))
			return err_set(err, ERR_USAGE, "%s: rank 0 has %.80s, rank %d has %.80s; give all machines the "
				       "same flags", flag, *value ? value : "none", rank,
				       *their_value ? their_value : "none");
		a += strlen(name) + strlen(value) + 2;
		b += strlen(theirs) + strlen(their_value) + 2;
	}
	return err_set(err, ERR_USAGE,
		       "rank 0 and rank %d have different flags: start the same program on all machines", rank);
}

/* Rank 0 and the first rank that differs send all their flags; all ranks compare them. */
static int compare_flag_texts(struct bootstrap *x, const struct buf *own, int differs, struct err *err)
{
	bool speaks = bootstrap_self(x) == 0 || bootstrap_self(x) == differs;
	int rc = bootstrap_round(x, own->data, speaks ? own->len : 0, NULL, err);
	struct flag_text first, other;

	if (rc)
		return rc;
	first = copy_rank_text(x, 0);
	other = copy_rank_text(x, differs);
	rc = first.text && other.text ? describe_flag_difference(first, other, differs, err)
				      : err_set(err, ERR_NOMEM, "out of memory: flags of the ranks");
	free(first.text);
	free(other.text);
	return rc;
}

/* Returns the first rank whose flags differ from rank 0's; 0: none. */
static int find_differing_rank(const struct bootstrap *x)
{
	size_t n, n_first;
	const void *first = bootstrap_said(x, 0, &n_first);

	for (int r = 1; r < bootstrap_count(x); r++) {
		const void *said = bootstrap_said(x, r, &n);

		if (n != n_first || memcmp(said, first, n))
			return r;
	}
	return 0;
}

int same_flags(const struct run_config *cfg, struct bootstrap *x, struct err *err)
{
	char hash[65] = "";
	struct err failure = ERR_INIT;
	struct buf own;
	int rc;

	buf_init(&own, FLAGS_BYTES_MAX);
	if (config_each(cfg, add_shared_flag, &own) || buf_failed(&own))
		err_set(&failure, ERR_NOMEM, "out of memory: flags of the rank");
	else
		sha256_hex(own.data, own.len, hash);
	rc = bootstrap_round(x, hash, sizeof(hash), &failure, err);
	if (!rc && find_differing_rank(x))
		rc = compare_flag_texts(x, &own, find_differing_rank(x), err);
	buf_done(&own);
	return rc;
}

/* kernels.c: rank 0 broadcasts its kernel choices as one text. */
#include "trainer/program/kernels.h"

#include <stdlib.h>
#include <string.h>

void kernels_add(void *user, const char *key, const char *name)
{
	buf_add(user, key, strlen(key) + 1);
	buf_add(user, name, strlen(name) + 1);
}

static int apply_choices(const struct rank *r, const char *text, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t at = 0; !rc && at < n;) {
		const char *key = text + at, *name = key + strlen(key) + 1;

		at += strlen(key) + strlen(name) + 2;
		rc = r->backend->choose(r->module, key, name, err);
	}
	return rc;
}

/* A text that did not fit is empty: then every rank measures for itself. */
int kernels_share(const struct rank *r, const struct buf *text, struct err *err)
{
	struct comm *c = rank_comm(r);
	bool mine = rank_is_root(r) && !buf_failed(text);
	int64_t n = mine ? (int64_t)text->len : 0;
	char *all;
	int rc = c->ops->broadcast(c, &n, sizeof(n), 0, err);

	if (rc || !n)
		return rc;
	all = calloc((size_t)n + 1, 1);
	if (!all)
		return err_set(err, ERR_NOMEM, "out of memory: kernel choices");
	if (mine)
		memcpy(all, text->data, (size_t)n);
	rc = c->ops->broadcast(c, all, (size_t)n, 0, err);
	if (!rc)
		rc = apply_choices(r, all, (size_t)n, err);
	free(all);
	return rc;
}

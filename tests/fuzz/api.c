/* SPDX-License-Identifier: Apache-2.0 */
/* api.c: the store and the handlers of a fuzz target. */
#include "tests/fuzz/api.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "web/api/api.h"
#include "web/server/local.h"
#include "web/store/store.h"

enum { ASKS_PER_STORE = 100000 };

static char folder[64];
static struct store *store;
static unsigned asks;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void close_store(void)
{
	if (!store)
		return;
	store_close(store);
	store = NULL;
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void must(int rc, const struct err *err)
{
	if (!rc)
		return;
	fprintf(stderr, "fuzz: %s\n", err->text);
	exit(1);
}

#define RUN "0123456789abcdef0123456789abcdef"

static const char *const content[][2] = {
	{ "/api/v1/runs",
	  "{\"id\":\"" RUN "\",\"name\":\"fuzz\",\"experiment\":\"e\",\"params\":{\"lr\":\"0.1\",\"name\":\"x\"},"
			  "\"tags\":{\"t\":\"v\"}}" },
	{ "/api/v1/runs/" RUN "/metrics", "{\"points\":[{\"key\":\"train/loss\",\"step\":1,\"value\":1.5},"
					  "{\"key\":\"m\",\"step\":2,\"value\":\"NaN\"},{\"key\":\"m\",\"step\":3,"
					  "\"value\":2}]}" },
	{ "/api/2.0/mlflow/logged-models", "{\"experiment_id\":\"1\",\"name\":\"model\",\"source_run_id\":\"" RUN "\","
					   "\"params\":[{\"key\":\"a\",\"value\":\"b\"}]}" },
	{ "/api/2.0/mlflow/runs/log-inputs",
	  "{\"run_id\":\"" RUN "\",\"datasets\":[{\"dataset\":{\"name\":\"d\",\"digest\":\"1\","
					     "\"source_type\":\"local\",\"source\":\"{}\"}}]}" },
};

static void open_store(void)
{
	const char *shm = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	struct err err = ERR_INIT;
	char db[128];

	snprintf(folder, sizeof(folder), "%s/dptrack-fuzz.XXXXXX", shm);
	if (!mkdtemp(folder)) {
		perror(folder);
		exit(1);
	}
	snprintf(db, sizeof(db), "%s/dptrack.db", folder);
	must(store_open(&store, &(struct store_opts){ .db_path = db }, &err), &err);
	for (size_t i = 0; i < sizeof(content) / sizeof(content[0]); i++)
		api_ask(METHOD_POST, content[i][0], content[i][1], NULL);
}

static int take(void *arg, const char *bytes, size_t n, struct err *err)
{
	unsigned sum = 0;
	size_t i;

	(void)err;
	if (arg)
		buf_add(arg, bytes, n);
	for (i = 0; i < n; i++)
		sum += (unsigned char)bytes[i];
	__asm__ volatile("" : : "r"(sum));
	return 0;
}

struct store *api_store(void)
{
	if (!store) {
		atexit(close_store);
		open_store();
	}
	return store;
}

void api_renew(void)
{
	close_store();
	open_store();
	asks = 0;
}

int api_ask(enum call_method method, const char *target, const char *body, struct buf *reply)
{
	struct err err = ERR_INIT;
	struct api api = { .store = api_store() };
	int status = 0;

	if (++asks == ASKS_PER_STORE) {
		api_renew();
		api.store = store;
	}
	local_request(&api, &(struct local_opts){ .method = call_method_name(method), .target = target, .body = body },
		      &status, &(struct local_sink){ take, reply }, &err);
	return status;
}

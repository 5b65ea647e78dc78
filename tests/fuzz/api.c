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

const char api_run_id[33] = "0123456789abcdef0123456789abcdef";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void close_store(void)
{
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
	api_ask(METHOD_POST, "/api/v1/runs", "{\"id\":\"0123456789abcdef0123456789abcdef\",\"name\":\"fuzz\",\"experiment\":\"e\","
					     "\"params\":{\"lr\":\"0.1\",\"name\":\"x\"},\"tags\":{\"t\":\"v\"}}");
	api_ask(METHOD_POST, "/api/v1/runs/0123456789abcdef0123456789abcdef/metrics",
		"{\"points\":[{\"key\":\"train/loss\",\"step\":1,\"value\":1.5},{\"key\":\"m\",\"step\":2,\"value\":\"NaN\"}]}");
}

static int take(void *arg, const char *bytes, size_t n, struct err *err)
{
	unsigned sum = 0;
	size_t i;

	(void)arg;
	(void)err;
	for (i = 0; i < n; i++)
		sum += (unsigned char)bytes[i];
	__asm__ volatile("" : : "r"(sum));
	return 0;
}

int api_ask(enum call_method method, const char *target, const char *body)
{
	struct err err = ERR_INIT;
	struct api api = { 0 };
	int status = 0;

	if (!store) {
		atexit(close_store);
		open_store();
	} else if (++asks == ASKS_PER_STORE) {
		asks = 0;
		close_store();
		open_store();
	}
	api.store = store;
	local_request(&api, &(struct local_opts){ .method = call_method_name(method), .target = target, .body = body }, &status,
		      &(struct local_sink){ take, NULL }, &err);
	return status;
}

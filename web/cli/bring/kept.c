/* kept.c: the server's tag of a file is its SHA-256, so that it is asked for the file unless it has just that one. */
#include "web/cli/bring/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/base/file_map.h"
#include "tracker/base/sha256.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"
#include "web/store/base/map.h"
#include "web/store/files/artifacts.h"

#define DIGEST_BYTES 65

/* The last digest of each name. */
static void note_files(const struct record *rec, struct map *names)
{
	struct event_item item;
	struct event ev;

	if (event_open(&ev, rec->payload, rec->payload_bytes))
		return;
	while (event_next(&ev, &item) > 0) {
		char *digest = item.kind == EVENT_FILE && item.key.len && item.text.len == DIGEST_BYTES - 1
			? map_put(names, item.key.at, item.key.len)
			: NULL;

		if (digest)
			memcpy(digest, item.text.at, DIGEST_BYTES - 1);
	}
}

/* Of whole records; what is damaged is the journal's own matter. */
static int list_files(const char *journal, struct map *names, struct err *err)
{
	struct file_map map;
	struct record rec;
	size_t at = 0;
	int rc = file_map_open(&map, journal, err);

	if (rc)
		return rc;
	while (record_next(map.bytes, map.n, &at, &rec) == RECORD_OK)
		note_files(&rec, names);
	file_map_close(&map);
	return 0;
}

static void digest_of(const struct file_map *map, char ret[DIGEST_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, map->bytes ? (const void *)map->bytes : "", map->n);
	sha256_end(&s, ret);
}

/* One request about the file; its status, 0 where none came. */
static long ask(const struct kept *k, const struct http_request *req, struct err *err)
{
	struct http_reply reply;
	char why[400];
	long status;

	if (http_send(k->http, req, &reply, err))
		return 0;
	status = reply.status;
	http_reply_reason(&reply, why, sizeof(why));
	http_reply_done(&reply);
	if (status / 100 != 2 && status != 304)
		err_set(err, ERR_PEER, "%s", why);
	return status;
}

static int put_file(const struct kept *k, const char *path, const struct file_map *map, const char *digest,
		    struct err *err)
{
	char like[DIGEST_BYTES + 20];
	const char *const unless[] = { like, "Range: bytes=0-0", NULL };
	const void *body = map->bytes ? (const void *)map->bytes : "";
	long status;

	snprintf(like, sizeof(like), "If-None-Match: \"%s\"", digest);
	status = ask(k, &(struct http_request){ .method = "GET", .path = path, .headers = unless }, err);
	if (status == 304)
		return 0;
	if (status)
		status = ask(k, &(struct http_request){ .method = "PUT", .path = path, .body = body,
							.body_bytes = map->n }, err);
	return status / 100 == 2 ? 0 : ERR_PEER;
}

/* The file of that name as the journal tells of it. */
static int send_one(const struct kept *k, const char *name, const char *digest, struct kept_result *ret,
		    struct err *err)
{
	const char *slash = strrchr(k->journal, '/');
	struct err why = ERR_INIT;
	struct file_map map;
	char path[4096], found[DIGEST_BYTES] = "";
	struct buf to;
	int rc = 0;

	snprintf(path, sizeof(path), "%.*sfiles/%s", slash ? (int)(slash + 1 - k->journal) : 0, k->journal, name);
	if (!artifact_path_ok(name) || file_map_open(&map, path, &why)) {
		ret->gone++;
		return 0;
	}
	digest_of(&map, found);
	buf_init(&to, sizeof(path) * 4);
	buf_addf(&to, "/api/v1/runs/%s/artifacts/", k->run);
	http_add_path(&to, name);
	if (buf_failed(&to))
		rc = err_set(err, ERR_NOMEM, "out of memory");
	else if (strcmp(found, digest) != 0)
		ret->gone++;
	else if (put_file(k, to.data, &map, digest, &why))
		rc = err_set(err, ERR_PEER, "%s: %s; what is left is sent when you call again", path, why.text);
	else
		ret->files++, ret->bytes += map.n;
	buf_done(&to);
	file_map_close(&map);
	return rc;
}

int kept_send(const struct kept *k, struct kept_result *ret, struct err *err)
{
	struct map *names = map_new(DIGEST_BYTES);
	int rc = names ? list_files(k->journal, names, err) : err_set(err, ERR_NOMEM, "out of memory");
	char name[1024];
	size_t n;

	for (size_t i = 0; !rc && i < map_count(names); i++) {
		const char *at = map_key_at(names, i, &n);

		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		rc = send_one(k, name, map_at(names, i), ret, err);
	}
	map_free(names);
	return rc;
}

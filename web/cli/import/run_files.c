/* run_files.c: uploads the files that programs stored with runs. The entity tag of a file is its SHA-256, so a
 * conditional GET shows whether the server has it. */
#include "web/cli/import/run_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tracker/base/buf.h"
#include "tracker/base/file.h"
#include "tracker/base/sha256.h"
#include "web/store/files/artifacts.h"

#define DIGEST_BYTES 65

static void hash_mapped_file(const struct file_map *map, char ret[DIGEST_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, map->bytes ? (const void *)map->bytes : "", map->n);
	sha256_end(&s, ret);
}

/* Sends one request about the file; returns its status, 0 without a reply. */
static long request_run_file(const struct kept_upload *k, const struct http_request *req, struct err *err)
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

static int upload_run_file(const struct kept_upload *k, const char *path, const struct file_map *map,
			   const char *digest, struct err *err)
{
	char like[DIGEST_BYTES + 20];
	const char *const unless[] = { like, "Range: bytes=0-0", NULL };
	const void *body = map->bytes ? (const void *)map->bytes : "";
	long status;

	snprintf(like, sizeof(like), "If-None-Match: \"%s\"", digest);
	status = request_run_file(k, &(struct http_request){ .method = "GET", .path = path, .headers = unless }, err);
	if (status == 304)
		return 0;
	if (status)
		status = request_run_file(k, &(struct http_request){ .method = "PUT", .path = path, .body = body,
							.body_bytes = map->n }, err);
	return status / 100 == 2 ? 0 : ERR_PEER;
}

/* Uploads a file if it is the one that the journals describe and the server lacks it. */
static int send_run_file(const struct kept_upload *k, const char *name, const char *digest,
			 struct run_files_result *ret, struct err *err)
{
	struct err why = ERR_INIT;
	struct file_map map;
	char path[4096], found[DIGEST_BYTES] = "";
	struct buf to;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/files/%s", k->folder, name);
	if (!artifact_path_ok(name) || file_map_open(&map, path, &why)) {
		ret->gone++;
		return 0;
	}
	hash_mapped_file(&map, found);
	buf_init(&to, sizeof(path) * 4);
	buf_addf(&to, "/api/v1/runs/%s/artifacts/", k->run);
	http_add_path(&to, name);
	if (buf_failed(&to))
		rc = err_set(err, ERR_NOMEM, "out of memory");
	else if (strcmp(found, digest) != 0)
		ret->gone++;
	else if (upload_run_file(k, to.data, &map, digest, &why))
		rc = err_set(err, ERR_PEER, "%s: %s: run the command again to send the rest", path, why.text);
	else
		ret->files++, ret->bytes += map.n;
	buf_done(&to);
	file_map_close(&map);
	return rc;
}

/* Fetches the server's list of the run's files: an array of name, bytes, sha256, owned by the caller. */
static int fetch_file_list(const struct kept_upload *k, json_t **ret, struct err *err)
{
	struct http_reply reply;
	json_t *run, *files = NULL;
	char path[100], why[400] = "";
	int rc;

	snprintf(path, sizeof(path), "/api/v1/runs/%s", k->run);
	rc = http_send(k->http, &(struct http_request){ .method = "GET", .path = path }, &reply, err);
	if (rc)
		return rc;
	run = reply.status == 200 ? json_loadb(reply.body.data, reply.body.len, 0, NULL) : NULL;
	if (json_is_array(json_object_get(run, "files")))
		files = json_incref(json_object_get(run, "files"));
	else if (reply.status != 200)
		http_reply_reason(&reply, why, sizeof(why));
	json_decref(run);
	http_reply_done(&reply);
	*ret = files;
	return files ? 0 : err_set(err, ERR_PEER, "%s does not list the files of run %s%s%s", http_url(k->http),
				   k->run, *why ? ": " : "", why);
}

int run_files_send(const struct kept_upload *k, struct run_files_result *ret, struct err *err)
{
	json_t *files, *file;
	size_t i;
	int rc = fetch_file_list(k, &files, err);

	if (rc)
		return rc;
	json_array_foreach(files, i, file) {
		const char *name = json_string_value(json_object_get(file, "name"));
		const char *digest = json_string_value(json_object_get(file, "sha256"));

		if (name && digest && strlen(digest) == DIGEST_BYTES - 1)
			rc = send_run_file(k, name, digest, ret, err);
		if (rc)
			break;
	}
	json_decref(files);
	return rc;
}

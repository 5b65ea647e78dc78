/* SPDX-License-Identifier: Apache-2.0 */
/* sync.c: `dptrack sync`: sends journals and files below a folder that a server lacks, for example after training
 * without a network. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/run_folders.h"
#include "tracker/base/sha256.h"
#include "tracker/base/utf8.h"
#include "web/cli/cli.h"
#include "web/cli/journals.h"
#include "web/store/base/beneath.h"
#include "web/store/base/map.h"
#include "web/store/files/artifacts.h"

/* --- files stored with runs: their entity tag is their SHA-256, which a conditional GET compares ---------------- */

struct kept_upload {
	struct http *http;
	const char *run;    /* id of the run */
	const char *folder; /* folder of its journals; the files are below files/ */
	const char *root;   /* nothing outside is sent */
};

struct run_files_result {
	uint64_t files, bytes; /* files of the journals that the server has, before or now */
	uint64_t gone;	       /* files of the journals that are missing here or differ from the journals */
};

#define DIGEST_BYTES 65
#define SYNC_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)

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
	char path[8192], found[DIGEST_BYTES] = "";
	struct buf to;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/files/%s", k->folder, name);
	if (!artifact_path_ok(name) || file_map_fd(&map, beneath_open_real(k->root, path, SYNC_FLAGS), path, &why)) {
		ret->gone++;
		return 0;
	}
	hash_mapped_file(&map, found);
	buf_init(&to, SIZE_MAX);
	buf_addf(&to, "/api/v1/runs/%s/artifacts/", k->run);
	http_add_path(&to, name);
	if (strcmp(found, digest) != 0)
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

/* Sends the files that the server lacks or has in another version. Adds to *ret. After ERR_PEER a repeated call sends
 * the rest. */
static int run_files_send(const struct kept_upload *k, struct run_files_result *ret, struct err *err)
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

#define ID_BYTES 33

struct sync_state {
	struct http *http;
	const char *root, *only;
	int patience_s;
	uint64_t files, bytes, foreign, damaged;
	uint64_t outside; /* journals that a link leads out of root to */
	char first_outside[600], first_damaged[600];
	struct map *folders; /* folders of the sent journals → id of their run */
	struct run_files_result kept;
};

static void remember_run_folder(struct sync_state *s, const char *journal, const char *run)
{
	char *id = map_put(s->folders, journal, (size_t)(strrchr(journal, '/') - journal));

	memcpy(id, run, ID_BYTES);
}

/* Returns true, counted, if the journal is a link out of the folder, or in a folder that is. */
static bool is_outside(struct sync_state *s, const char *path)
{
	int fd = beneath_open_real(s->root, path, SYNC_FLAGS);
	bool outside = fd < 0 && errno == EXDEV;

	if (fd >= 0)
		close(fd);
	if (outside && !s->outside++)
		utf8_escape(s->first_outside, sizeof(s->first_outside), path);
	return outside;
}

/* Sends one journal, unless another program wrote it or it belongs to another run. */
static int send_folder_journal(void *user, const char *path, struct err *err)
{
	struct sync_state *s = user;
	struct err why = ERR_INIT;
	struct journal_id id;
	char whole[4096], name[1024], shown[4096];
	uint64_t bytes = 0;
	int rc;

	snprintf(whole, sizeof(whole), "%s/%s", s->root, path);
	if (is_outside(s, whole))
		return 0;
	if (journal_identify(whole, &id, &why)) {
		if (!s->damaged++)
			utf8_escape(s->first_damaged, sizeof(s->first_damaged), why.text);
		return 0;
	}
	if (!id.ours) {
		s->foreign++;
		return 0;
	}
	if (s->only && strncmp(id.run, s->only, strlen(s->only)) != 0 && strcmp(id.name, s->only) != 0)
		return 0;
	rc = journal_push(&(struct journal_push){ .http = s->http, .path = whole, .run = id.run, .writer = id.writer,
						  .patience_s = s->patience_s },
			  &bytes, err);
	if (rc)
		return rc;
	utf8_escape(name, sizeof(name), id.name);
	utf8_escape(shown, sizeof(shown), path);
	printf("%-8.8s  %-30s  %12llu bytes  %s\n", id.run, name, (unsigned long long)bytes, shown);
	s->files++;
	s->bytes += bytes;
	remember_run_folder(s, whole, id.run);
	return 0;
}

static int send_kept_files(struct sync_state *s, struct err *err)
{
	char folder[4096];
	int rc = 0;
	size_t n;

	for (size_t i = 0; !rc && i < map_count(s->folders); i++) {
		const char *at = map_key_at(s->folders, i, &n);

		snprintf(folder, sizeof(folder), "%.*s", (int)n, at);
		rc = run_files_send(&(struct kept_upload){ s->http, map_at(s->folders, i), folder, s->root }, &s->kept,
				    err);
	}
	return rc;
}

/* Sends all journals, then the files of their runs, and prints a summary. */
static int sync_folder_runs(struct sync_state *s, struct err *err)
{
	char a[64], b[64];
	int rc = journals_each(s->root, send_folder_journal, s, err);

	rc = rc ? rc : send_kept_files(s, err);
	if (rc)
		return rc;
	if (!s->files && s->only)
		return err_set(err, ERR_USAGE, "no run %s below %s: use an id, the first digits of one, or a "
			       "name", s->only, s->root);
	printf("%s, %s: complete on %s\n", cli_count(a, s->files, "journal"), cli_count(b, s->bytes, "byte"),
	       http_url(s->http));
	if (s->kept.files)
		printf("%s, %s: stored as artifacts\n", cli_count(a, s->kept.files, "kept file"),
		       cli_count(b, s->kept.bytes, "byte"));
	if (s->kept.gone)
		printf("skipped: %s, replaced or removed since\n", cli_count(a, s->kept.gone, "kept file"));
	if (s->foreign)
		printf("skipped: %s of other programs; use `dptrack import` for them\n",
		       cli_count(a, s->foreign, "event file"));
	if (s->outside)
		printf("skipped: %s outside the folder, where links lead (%s): use --logdir with their folder\n",
		       cli_count(a, s->outside, "journal"), s->first_outside);
	if (s->damaged)
		printf("skipped: %s without a complete record, or that cannot be read (%s)\n",
		       cli_count(a, s->damaged, "file"), s->first_damaged);
	return 0;
}

/* Reads the flags and sends the runs. */
static int run_sync_command(int argc, char **argv, struct err *err)
{
	struct sync_state s = { .root = run_folders_dir(NULL), .patience_s = 60 };
	const char *url = NULL;
	bool help = false;
	const struct flag table[] = {
		{ "logdir", FLAG_PATH, "DIR", "folder of runs (default: DPTRACK_RUNS_DIR, or runs)", &s.root, 0, 0 },
		{ "url", FLAG_TEXT, "URL", "the server (default: DPTRACK_URL)", &url, 0, 0 },
		{ "patience", FLAG_NUMBER, "SECONDS",
		  "how long to wait for a server that does not answer (default: 60)", &s.patience_s, 0, 86400 },
		{ "help", FLAG_SWITCH, "", "print this help", &help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_sync, .table = table, .help = &help, .words_max = 1 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = source_folder(s.root, err);
	if (!rc)
		rc = journals_server(&s.http, url, err);
	if (!rc) {
		s.only = line.words.count ? line.words.items[0] : NULL;
		s.folders = map_new(ID_BYTES);
		rc = sync_folder_runs(&s, err);
	}
	map_free(s.folders);
	http_close(s.http);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_sync = { .name = "sync",
				      .group = "Import",
				      .words = "[RUN]",
				      .summary = "send runs below a folder to a server, as far as it lacks them",
				      .examples = "  dptrack sync --logdir runs --url https://host:8080\n"
						  "  DPTRACK_URL=https://host:8080 dptrack sync red-fox\n",
				      .run = run_sync_command };

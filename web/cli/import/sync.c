/* sync.c: `dptrack sync`: sends what a server lacks of the runs below a folder, as after training without a network. */
#include <stdio.h>
#include <string.h>

#include "web/cli/import/run_files.h"
#include "web/cli/cli.h"
#include "web/cli/journals.h"
#include "web/store/base/map.h"

#define ID_BYTES 33

struct sync {
	struct http *http;
	const char *root, *only;
	int patience_s;
	uint64_t files, bytes, foreign, damaged;
	struct map *folders; /* of journals that were sent: their run's id */
	struct run_files_result kept;
};

static int note_folder(struct sync *s, const char *journal, const char *run, struct err *err)
{
	char *id = map_put(s->folders, journal, (size_t)(strrchr(journal, '/') - journal));

	if (!id)
		return err_set(err, ERR_NOMEM, "out of memory");
	memcpy(id, run, ID_BYTES);
	return 0;
}

static int send_one(void *user, const char *path, struct err *err)
{
	struct sync *s = user;
	struct journal_id id;
	char whole[4096];
	uint64_t bytes = 0;
	int rc;

	snprintf(whole, sizeof(whole), "%s/%s", s->root, path);
	if (journal_identify(whole, &id, NULL)) {
		s->damaged++;
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
	printf("%-8.8s  %-30s  %12llu bytes  %s\n", id.run, id.name, (unsigned long long)bytes, path);
	s->files++;
	s->bytes += bytes;
	return note_folder(s, whole, id.run, err);
}

static int send_kept(struct sync *s, struct err *err)
{
	char folder[4096];
	int rc = 0;
	size_t n;

	for (size_t i = 0; !rc && i < map_count(s->folders); i++) {
		const char *at = map_key_at(s->folders, i, &n);

		snprintf(folder, sizeof(folder), "%.*s", (int)n, at);
		rc = run_files_send(&(struct run_files){ s->http, map_at(s->folders, i), folder }, &s->kept, err);
	}
	return rc;
}

static int sync_all(struct sync *s, struct err *err)
{
	char a[64], b[64];
	int rc = journals_each(s->root, send_one, s, err);

	rc = rc ? rc : send_kept(s, err);
	if (rc)
		return rc;
	if (!s->files && s->only)
		return err_set(err, ERR_USAGE, "no run %s below %s: name it by its id, the first digits of it, or its "
			       "name", s->only, s->root);
	printf("%s, %s: %s has all of it\n", cli_count(a, s->files, "journal"), cli_count(b, s->bytes, "byte"),
	       http_url(s->http));
	if (s->kept.files)
		printf("%s, %s: as its artifacts\n", cli_count(a, s->kept.files, "kept file"),
		       cli_count(b, s->kept.bytes, "byte"));
	if (s->kept.gone)
		printf("left out: %s, replaced or removed since\n", cli_count(a, s->kept.gone, "kept file"));
	if (s->foreign)
		printf("left out: %s of other programs; `dptrack import` takes them\n",
		       cli_count(a, s->foreign, "event file"));
	if (s->damaged)
		printf("left out: %s without a whole record\n", cli_count(a, s->damaged, "file"));
	return 0;
}

static int sync_run(int argc, char **argv, struct err *err)
{
	struct sync s = { .root = "runs", .patience_s = 60 };
	const char *url = NULL;
	bool help = false;
	const struct flag table[] = {
		{ "logdir", FLAG_PATH, "DIR", "folder of runs (default: runs)", &s.root, 0, 0 },
		{ "url", FLAG_TEXT, "URL", "the server (default: DPTRACK_URL)", &url, 0, 0 },
		{ "patience", FLAG_NUMBER, "SECONDS",
		  "how long to wait for a server that does not answer (default: 60)", &s.patience_s, 0, 86400 },
		{ "help", FLAG_SWITCH, "", "this text", &help, 0, 0 },
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
		rc = s.folders ? sync_all(&s, err) : err_set(err, ERR_NOMEM, "out of memory");
	}
	map_free(s.folders);
	http_close(s.http);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_sync = {
	.name = "sync", .group = "Import", .words = "[RUN]",
	.summary = "send what a server lacks of the runs below a folder", .run = sync_run
};

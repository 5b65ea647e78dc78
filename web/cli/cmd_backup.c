/* cmd_backup.c: `dptrack backup`: a copy of a store that is in use, and putting one back. */
#include "web/cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "web/store/store.h"
#include "web/store/maintenance/maintenance.h"

struct backup {
	struct cli_common common;
	bool restore;
};

/* The folder that is to hold it exists; the name may not. */
static int absolute(const char *path, char ret[PATH_MAX], struct err *err)
{
	char folder[PATH_MAX], real[PATH_MAX];
	size_t n = strlen(path);
	const char *slash;

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n >= sizeof(folder))
		return err_set(err, ERR_USAGE, "the path is too long");
	snprintf(folder, sizeof(folder), "%.*s", (int)n, path);
	slash = strrchr(folder, '/');
	snprintf(ret, PATH_MAX, "%s", slash ? slash + 1 : folder);
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - folder + 1) : 1, slash ? path : ".");
	if (!realpath(folder, real))
		return err_set_errno(err, errno, "%s", folder);
	snprintf(folder, sizeof(folder), "%s", ret);
	if (snprintf(ret, PATH_MAX, "%s/%s", real, folder) >= PATH_MAX)
		return err_set(err, ERR_USAGE, "the path is too long");
	return 0;
}

static int make(const struct backup *b, const char *to, struct err *err)
{
	const struct cli_common *c = &b->common;
	struct local_opts request = { .method = "POST", .target = "/api/v1/backup" };
	json_t *body, *reply = NULL;
	char path[PATH_MAX];
	struct source *s;
	int rc = 0;

	if (c->source.url)
		snprintf(path, sizeof(path), "%s", to); /* of the server's machine */
	else
		rc = absolute(to, path, err);
	if (!rc)
		rc = source_open(&s, &c->source, err);
	if (rc)
		return rc;
	body = json_pack("{s:s}", "path", path);
	if (!body) {
		source_close(s);
		return err_set(err, ERR_USAGE, "%s: the path of a backup is UTF-8", path);
	}
	request.body = json_dumps(body, 0);
	rc = c->json ? cli_print(s, &request, err) : source_json(s, &request, &reply, err);
	if (!rc && !c->json)
		printf("%s: %.1f MB and %lld artifacts (%.1f MB)\n", cli_text(reply, "path"),
		       (double)json_integer_value(json_object_get(reply, "bytes")) * 1e-6,
		       (long long)json_integer_value(json_object_get(reply, "artifacts")),
		       (double)json_integer_value(json_object_get(reply, "artifact_bytes")) * 1e-6);
	free((char *)request.body);
	json_decref(body);
	json_decref(reply);
	source_close(s);
	return rc;
}

static int put_back(const struct backup *b, const char *from, struct err *err)
{
	const struct source_opts *o = &b->common.source;
	struct store_paths paths;
	const char *db = o->db;
	char shown[PATH_MAX];
	bool replaced = false;
	int rc;

	if (o->url)
		return err_set(err, ERR_USAGE,
			       "--restore works on a folder that no server holds: name it with --logdir");
	rc = source_place(&db, err);
	if (!rc && store_is_address(db)) {
		store_shown(shown, sizeof shown, db);
		rc = err_set(err, ERR_USAGE,
			     "--restore puts files in their place; into a new database: dptrack migrate %s %s", from,
			     shown);
	}
	if (!rc)
		rc = store_locate(&paths, o->logdir ? o->logdir : "runs", db, err);
	if (!rc) {
		replaced = !access(paths.db, F_OK);
		rc = store_restore(from, &paths, err);
	}
	if (!rc)
		printf("%s is back from %s%s\n", paths.db, from,
		       replaced ? "; what was there got .before-restore behind its name" : "");
	return rc;
}

static int backup_run(int argc, char **argv, struct err *err)
{
	struct backup b = { 0 };
	const struct flag table[] = {
		{ "restore", FLAG_SWITCH, "",
		  "put the backup DIR|FILE in the place of the store (stop its server first)", &b.restore, 0, 0 },
		CLI_COMMON_FLAGS(&b.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_backup, .table = table, .help = &b.common.help, .words_max = 1 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && b.common.csv)
		rc = err_set(err, ERR_USAGE, "backup: takes --json, not --csv");
	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "backup: name a folder to be made, or a file *.db");
	if (!rc)
		rc = b.restore ? put_back(&b, line.words.items[0], err) : make(&b, line.words.items[0], err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_backup = {
	.name = "backup", .group = "Maintain", .words = "DIR|FILE.db",
	.summary = "copy store and artifacts, also while they are served; or put a copy back", .run = backup_run
};

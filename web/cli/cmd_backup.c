/* cmd_backup.c: `dptrack backup`: copies a store that is in use, or restores a copy. */
#include "web/cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "web/store/store.h"
#include "web/store/maintenance/maintenance.h"

struct backup_options {
	struct cli_common common;
	bool restore;
};

/* Makes a path absolute whose folder exists; the last name need not exist. */
static int resolve_backup_path(const char *path, char ret[PATH_MAX], struct err *err)
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

/* Copies the store, through the server that has it open or in this process, and prints the size. */
static int make_backup(const struct backup_options *b, const char *to, struct err *err)
{
	const struct cli_common *c = &b->common;
	struct local_opts request = { .method = "POST", .target = "/api/v1/backup" };
	json_t *body, *reply = NULL;
	char path[PATH_MAX];
	struct source *s;
	int rc = 0;

	if (c->source.url)
		snprintf(path, sizeof(path), "%s", to); /* a path of the server's machine */
	else
		rc = resolve_backup_path(to, path, err);
	if (!rc)
		rc = source_open(&s, &c->source, err);
	if (rc)
		return rc;
	body = json_pack("{s:s}", "path", path);
	if (!body) {
		source_close(s);
		return err_set(err, ERR_USAGE, "%s: the path of a backup must be UTF-8", path);
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

/* Puts a backup in the place of the store; a store that exists gets another name. */
static int restore_backup(const struct backup_options *b, const char *from, struct err *err)
{
	const struct source_opts *o = &b->common.source;
	struct store_paths paths;
	const char *db = o->db;
	char shown[PATH_MAX];
	bool replaced = false;
	int rc;

	if (o->url)
		return err_set(err, ERR_USAGE,
			       "--restore needs a folder that no server has open: use --logdir");
	rc = source_place(&db, err);
	if (!rc && store_is_address(db)) {
		store_shown(shown, sizeof shown, db);
		rc = err_set(err, ERR_USAGE,
			     "--restore restores files only; for a new database use dptrack migrate %s %s", from,
			     shown);
	}
	if (!rc)
		rc = store_locate(&paths, o->logdir ? o->logdir : "runs", db, err);
	if (!rc) {
		replaced = !access(paths.db, F_OK);
		rc = store_restore(from, &paths, err);
	}
	if (!rc)
		printf("%s restored from %s%s\n", paths.db, from,
		       replaced ? "; the previous files have the suffix .before-restore" : "");
	return rc;
}

static int run_backup_command(int argc, char **argv, struct err *err)
{
	struct backup_options b = { 0 };
	const struct flag table[] = {
		{ "restore", FLAG_SWITCH, "",
		  "replace the store by the backup DIR|FILE (stop its server first)", &b.restore, 0, 0 },
		CLI_COMMON_FLAGS(&b.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_backup, .table = table, .help = &b.common.help, .words_max = 1 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && b.common.csv)
		rc = err_set(err, ERR_USAGE, "backup: --csv is not supported: use --json");
	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "backup: expected a new folder or a file *.db");
	if (!rc)
		rc = b.restore ? restore_backup(&b, line.words.items[0], err)
			       : make_backup(&b, line.words.items[0], err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_backup = {
	.name = "backup",
	.group = "Maintain",
	.words = "DIR|FILE.db",
	.summary = "copy the store and artifacts, also while they are served; or restore a copy",
	.run = run_backup_command
};

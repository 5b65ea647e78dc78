/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_store.c: commands on a whole store: `dptrack db` creates, checks and upgrades its tables in PostgreSQL, `dptrack
 * migrate` moves it, rows and files, or dumps it as text, `dptrack backup` copies it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/run_folders.h"
#include "web/cli/cli.h"
#include "web/store/maintenance/maintenance.h"
#include "web/store/move/move.h"

/* --- migrate ---------------------------------------------------------------------------------------------------- */

struct migrate_options {
	struct move_place from, to;
	bool dump, help;
};

/* Checks a place of the command line: an address must not contain a password. */
static int check_store_address(const char *place, struct err *err)
{
	return store_is_address(place) ? source_place(&place, err) : 0;
}

static int print_dump_text(void *arg, const char *text, size_t n, struct err *err)
{
	(void)arg;
	return fwrite(text, 1, n, stdout) == n ? 0 : err_set(err, ERR_IO, "cannot write to standard output");
}

static int dump_store_text(const struct migrate_options *m, struct err *err)
{
	char sha256[65];

	return move_dump(&m->from, print_dump_text, NULL, sha256, err);
}

static int move_whole_store(const struct migrate_options *m, struct err *err)
{
	struct move_result r;
	char shown[1024];
	int rc = move_store(&m->from, &m->to, &r, err);

	if (rc)
		return rc;
	store_shown(shown, sizeof(shown), m->to.store);
	printf("%s: %" PRIu64 " rows and %" PRIu64 " files (%.1f MB", shown, r.rows, r.files, (double)r.bytes * 1e-6);
	if (r.kept)
		printf("; %" PRIu64 " of them already copied by an earlier attempt", r.kept);
	printf(") in %.1f s\nSHA-256 of both: %s\n", r.seconds, r.sha256);
	return 0;
}

static int run_migration(struct migrate_options *m, const struct flag_list *words, struct err *err)
{
	size_t i;
	int rc = 0;

	if (words->count != (m->dump ? 1 : 2))
		return err_set(err, ERR_USAGE,
			       "migrate: expected %s: a folder of runs, a file *.db, or postgresql://USER@HOST/NAME",
			       m->dump ? "one place to dump" : "the places FROM and TO");
	for (i = 0; i < words->count && !rc; i++)
		rc = check_store_address(words->items[i], err);
	m->from.store = words->items[0];
	m->to.store = m->dump ? NULL : words->items[1];
	if (!rc)
		rc = m->dump ? dump_store_text(m, err) : move_whole_store(m, err);
	return rc;
}

static int run_migrate_command(int argc, char **argv, struct err *err)
{
	struct migrate_options m = { .dump = false };
	const struct flag table[] = {
		{ "artifacts", FLAG_PATH, "PLACE", "files of TO: a folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX",
		  &m.to.files, 0, 0 },
		{ "from-artifacts", FLAG_PATH, "PLACE", "files of FROM, unless they are at the default place",
		  &m.from.files, 0, 0 },
		{ "dump", FLAG_SWITCH, "",
		  "print the content of FROM as text, the same for every kind of store, and move nothing", &m.dump, 0,
		  0 },
		{ "help", FLAG_SWITCH, "", "print this help", &m.help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_migrate, .table = table, .help = &m.help, .words_max = 2 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = run_migration(&m, &line.words, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_migrate = {
	.name = "migrate", .group = "Maintain", .words = "FROM TO",
	.summary = "move a store, rows and files, to PostgreSQL, back, or to another folder",
	.examples = "  dptrack migrate runs postgresql://user@host/name\n"
		    "  dptrack migrate postgresql://user@host/name copy\n",
	.run = run_migrate_command
};

/* --- backup: copies a store that is in use, or restores a copy -------------------------------------------------- */

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
	if (!realpath(folder, real) && errno == ENOENT)
		return err_set(err, ERR_USAGE, "backup %s: no folder %s: create it, or mount its disk", path, folder);
	if (!realpath(folder, real))
		return err_set_errno(err, errno, "backup %s: %s", path, folder);
	snprintf(folder, sizeof(folder), "%s", ret);
	if (snprintf(ret, PATH_MAX, "%s/%s", real, folder) >= PATH_MAX)
		return err_set(err, ERR_USAGE, "the path is too long");
	return 0;
}

/* Copies the store, through the server that has it open or in this process, and prints the size. */
static int make_backup(const struct backup_options *b, const char *to, struct err *err)
{
	const struct cli_common *c = &b->common;
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
	rc = cli_send(s, &(struct cli_request){ "POST", "/api/v1/backup", body, c->json }, &reply, err);
	if (reply)
		printf("%s: %.1f MB and %lld artifacts (%.1f MB)\n", cli_text(reply, "path"),
		       (double)json_integer_value(json_object_get(reply, "bytes")) * 1e-6,
		       (long long)json_integer_value(json_object_get(reply, "artifacts")),
		       (double)json_integer_value(json_object_get(reply, "artifact_bytes")) * 1e-6);
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
		return err_set(err, ERR_USAGE, "--restore needs a folder that no server has open: use --logdir");
	rc = source_place(&db, err);
	if (!rc && store_is_address(db)) {
		store_shown(shown, sizeof(shown), db);
		rc = err_set(err, ERR_USAGE,
			     "--restore restores files only; for a new database use dptrack migrate %s %s", from,
			     shown);
	}
	if (!rc)
		rc = store_locate(&paths, run_folders_dir(o->logdir), db, err);
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
		{ "restore", FLAG_SWITCH, "", "replace the store by the backup DIR|FILE (stop its server first)",
		  &b.restore, 0, 0 },
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
	.examples = "  dptrack backup /mnt/backup\n"
		    "  dptrack backup --restore /mnt/backup\n",
	.run = run_backup_command
};

static int init_database(const char *address, const char *shown, struct err *err)
{
	int rc = store_address_init(address, err);

	if (!rc)
		printf("%s: created the tables of the store; start dptrack serve --db to serve it\n", shown);
	return rc;
}

static int print_database_status(const char *address, const char *shown, struct err *err)
{
	int version, rc = store_address_version(address, &version, err);

	if (rc)
		return rc;
	if (!version)
		return err_set(err, ERR_NOENT, "%s contains no store: create one with dptrack db init", shown);
	printf("%s: store version %d; this dptrack needs %d%s\n", shown, version, store_address_wants(),
	       version < store_address_wants() ? ": run dptrack db upgrade" : "");
	return 0;
}

static int upgrade_database(const char *address, const char *shown, struct err *err)
{
	int from, rc = store_address_upgrade(address, &from, err);

	if (rc)
		return rc;
	if (from == store_address_wants())
		printf("%s: store version %d is up to date\n", shown, from);
	else
		printf("%s: upgraded from store version %d to %d; restart the processes of the old version\n", shown,
		       from, store_address_wants());
	return 0;
}

static int run_db_action(const char *word, const char *address, struct err *err)
{
	static const struct {
		const char *word;
		int (*run)(const char *address, const char *shown, struct err *err);
	} actions[] = { { "init", init_database },
			{ "status", print_database_status },
			{ "upgrade", upgrade_database } };
	char shown[1024];
	size_t i;

	store_shown(shown, sizeof(shown), address);
	for (i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(word, actions[i].word))
			return actions[i].run(address, shown, err);
	return err_set(err, ERR_USAGE, "db %s: expected init, status or upgrade", word);
}

/* Reads the flags and runs init, status or upgrade. */
static int run_db_command(int argc, char **argv, struct err *err)
{
	const char *db = NULL;
	bool help = false;
	const struct flag table[] = {
		{ "db", FLAG_PATH, "ADDRESS", "postgresql://USER@HOST/NAME (default: DPTRACK_DB)", &db, 0, 0 },
		{ "help", FLAG_SWITCH, "", "print this help", &help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_db, .table = table, .help = &help, .words_max = 1 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = source_place(&db, err);
	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "db: expected init, status or upgrade");
	if (!rc && !store_is_address(db))
		rc = err_set(
			err, ERR_USAGE,
			"db: expected a database: use --db postgresql://USER@HOST/NAME or DPTRACK_DB; a file needs "
			"no such step");
	if (!rc)
		rc = run_db_action(line.words.items[0], db, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_db = { .name = "db",
				    .group = "Maintain",
				    .words = "init|status|upgrade",
				    .summary = "create, check or upgrade the tables of a store in PostgreSQL",
				    .examples = "  DPTRACK_DB=postgresql://user@host/name dptrack db init\n"
						"  dptrack db status\n",
				    .run = run_db_command };

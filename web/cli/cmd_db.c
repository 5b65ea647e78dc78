/* cmd_db.c: `dptrack db`: creates, checks and upgrades the tables of a store in PostgreSQL. */
#include "web/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "web/store/store.h"

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
	       version == store_address_wants() ? "" : ": run dptrack db upgrade");
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

	store_shown(shown, sizeof shown, address);
	for (i = 0; i < sizeof actions / sizeof actions[0]; i++)
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

const struct cli_command cli_db = {
	.name = "db", .group = "Maintain", .words = "init|status|upgrade",
	.summary = "create, check or upgrade the tables of a store in PostgreSQL", .run = run_db_command
};

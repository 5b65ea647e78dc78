/* cmd_db.c: `dptrack db`: the tables of a store in PostgreSQL: made, looked at, brought to this version. */
#include "web/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "web/store/store.h"

static int init(const char *address, const char *shown, struct err *err)
{
	int rc = store_address_init(address, err);

	if (!rc)
		printf("%s: the store's tables are made; dptrack serve --db serves it\n", shown);
	return rc;
}

static int status(const char *address, const char *shown, struct err *err)
{
	int version, rc = store_address_version(address, &version, err);

	if (rc)
		return rc;
	if (!version)
		return err_set(err, ERR_NOENT, "%s holds no store yet: dptrack db init makes one", shown);
	printf("%s: store version %d; this dptrack wants %d%s\n", shown, version, store_address_wants(),
	       version == store_address_wants() ? "" : ", see dptrack db upgrade");
	return 0;
}

static int upgrade(const char *address, const char *shown, struct err *err)
{
	int from, rc = store_address_upgrade(address, &from, err);

	if (rc)
		return rc;
	if (from == store_address_wants())
		printf("%s: store version %d is this dptrack's: there is nothing to do\n", shown, from);
	else
		printf("%s: upgraded from store version %d to %d; restart processes of the version before\n", shown,
		       from, store_address_wants());
	return 0;
}

static int act(const char *word, const char *address, struct err *err)
{
	static const struct {
		const char *word;
		int (*run)(const char *address, const char *shown, struct err *err);
	} actions[] = { { "init", init }, { "status", status }, { "upgrade", upgrade } };
	char shown[1024];
	size_t i;

	store_shown(shown, sizeof shown, address);
	for (i = 0; i < sizeof actions / sizeof actions[0]; i++)
		if (!strcmp(word, actions[i].word))
			return actions[i].run(address, shown, err);
	return err_set(err, ERR_USAGE, "db %s: want init, status or upgrade", word);
}

static int db_command(int argc, char **argv, struct err *err)
{
	const char *db = NULL;
	bool help = false;
	const struct flag table[] = {
		{ "db", FLAG_PATH, "ADDRESS", "postgresql://USER@HOST/NAME (default: DPTRACK_DB)", &db, 0, 0 },
		{ "help", FLAG_SWITCH, "", "this text", &help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_db, .table = table, .help = &help, .words_max = 1 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = source_place(&db, err);
	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "db: want init, status or upgrade");
	if (!rc && !store_is_address(db))
		rc = err_set(err, ERR_USAGE,
			     "db: name a database, --db postgresql://USER@HOST/NAME or DPTRACK_DB; a file needs "
			     "none of this");
	if (!rc)
		rc = act(line.words.items[0], db, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_db = {
	.name = "db", .group = "Maintain", .words = "init|status|upgrade",
	.summary = "make or look at a store's tables in PostgreSQL", .run = db_command
};

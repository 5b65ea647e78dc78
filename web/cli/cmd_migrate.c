/* cmd_migrate.c: `dptrack migrate`: a whole store, rows and files, from one place to another; or what it holds as one
 * text. */
#include "web/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>

#include "web/store/move/move.h"
#include "web/store/store.h"

struct migrate {
	struct move_place from, to;
	bool dump, help;
};

/* A place on the command line: an address without a password. */
static int check_place(const char *place, struct err *err)
{
	return store_is_address(place) ? source_place(&place, err) : 0;
}

static int print(void *arg, const char *text, size_t n, struct err *err)
{
	(void)arg;
	return fwrite(text, 1, n, stdout) == n ? 0 : err_set(err, ERR_IO, "cannot write to standard output");
}

static int dump(const struct migrate *m, struct err *err)
{
	char sha256[65];

	return move_dump(&m->from, print, NULL, sha256, err);
}

static int move(const struct migrate *m, struct err *err)
{
	struct move_result r;
	char shown[1024];
	int rc = move_store(&m->from, &m->to, &r, err);

	if (rc)
		return rc;
	store_shown(shown, sizeof shown, m->to.store);
	printf("%s: %" PRIu64 " rows and %" PRIu64 " files (%.1f MB", shown, r.rows, r.files, (double)r.bytes * 1e-6);
	if (r.kept)
		printf("; %" PRIu64 " of them were there from an earlier try", r.kept);
	printf(") in %.1f s\nSHA-256 of both: %s\n", r.seconds, r.sha256);
	return 0;
}

static int act(struct migrate *m, const struct flag_list *words, struct err *err)
{
	size_t i;
	int rc = 0;

	if (words->count != (m->dump ? 1 : 2))
		return err_set(err, ERR_USAGE,
			       "migrate: name %s: a folder of runs, a file *.db, or postgresql://USER@HOST/NAME",
			       m->dump ? "one place to dump" : "the places FROM and TO");
	for (i = 0; i < words->count && !rc; i++)
		rc = check_place(words->items[i], err);
	m->from.store = words->items[0];
	m->to.store = m->dump ? NULL : words->items[1];
	if (!rc)
		rc = m->dump ? dump(m, err) : move(m, err);
	return rc;
}

static int migrate_run(int argc, char **argv, struct err *err)
{
	struct migrate m = { .dump = false };
	const struct flag table[] = {
		{ "artifacts", FLAG_PATH, "PLACE", "where TO keeps its files: a folder, or s3://BUCKET/PREFIX",
		  &m.to.files, 0, 0 },
		{ "from-artifacts", FLAG_PATH, "PLACE",
		  "where FROM keeps them, when it is not where a server would look", &m.from.files, 0, 0 },
		{ "dump", FLAG_SWITCH, "", "print what FROM holds as text, the same wherever it lies, and move nothing",
		  &m.dump, 0, 0 },
		{ "help", FLAG_SWITCH, "", "this text", &m.help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_migrate, .table = table, .help = &m.help, .words_max = 2 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = act(&m, &line.words, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_migrate = {
	.name = "migrate", .group = "Maintain", .words = "FROM TO",
	.summary = "move a store, rows and files, into PostgreSQL or back, or another folder", .run = migrate_run
};

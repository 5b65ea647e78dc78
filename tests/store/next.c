/* SPDX-License-Identifier: Apache-2.0 */
/* next.c: a program of the version after this one, which has one more table: opens the store at a place as the server
 * does, an address after an upgrade. Prints the reason when it cannot. */
#include <stdio.h>

#include "web/store/db/engine.h"

#define NEXT 28
_Static_assert(NEXT == DB_VERSION + 1, "the next version");
#define TEXT2(n) #n
#define TEXT(n) TEXT2(n)

const int db_version = NEXT;

const struct db_migration db_sqlite_migrations[] = {
	{ NEXT, "CREATE TABLE made_up (id INTEGER PRIMARY KEY); PRAGMA user_version = " TEXT(NEXT) },
	{ 0, NULL },
};

const struct db_migration db_pg_migrations[] = {
	{ NEXT, "CREATE TABLE made_up (id bigint PRIMARY KEY); "
		"UPDATE meta SET value = '" TEXT(NEXT) "' WHERE name = 'version'" },
	{ 0, NULL },
};

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct db *d = NULL;
	int from, rc = argc == 2 ? 0 : err_set(&err, ERR_USAGE, "give a place");

	if (!rc && db_is_address(argv[1]))
		rc = db_address_upgrade(argv[1], &from, &err);
	if (!rc)
		rc = db_open_writer(&d, argv[1], &err);
	if (rc)
		printf("%s\n", err.text);
	db_close(d);
	return rc != 0;
}

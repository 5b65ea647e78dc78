/* SPDX-License-Identifier: Apache-2.0 */
/* migrations.c: the changes of the tables, from one version of a store to the next. Nothing else is in this file, so
 * that tests/store/next.c can have others. */
#include "web/store/db/engine.h"

#define SQL_MIGRATION(number, text) { number, text },

const int db_version = DB_VERSION;

const struct db_migration db_sqlite_migrations[] = {
#include "web/store/db/migrations.def"
	{ 0, NULL }
};

const struct db_migration db_pg_migrations[] = {
#include "web/store/db/migrations_pg.def"
	{ 0, NULL }
};

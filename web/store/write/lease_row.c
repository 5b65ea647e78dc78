/* lease_row.c: leases as rows of the table meta, timed by the clock of the database. */
#include "web/store/write/lease_row.h"

#include "web/store/db/db.h"

int lease_row_take(struct db *d, const char *holder, const char *name, struct err *err)
{
	int64_t one;

	if (!db_shared(d))
		return 1;
	return db_lost(d) ? err_set(err, ERR_BUSY, "the database is away") :
			    db_int(d, &one, DB_lease_take, err, "tti", name, holder, (int64_t)LEASE_S * 1000);
}

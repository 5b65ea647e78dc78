/* pgso.c: libpq's functions. */
#include "config.h"

#ifdef HAVE_LIBPQ

#include "web/store/db/pgso.h"

#include "tracker/base/library.h"

#define FILE_NAME "libpq.so.5"

int pgso_load(struct pgso *ret, struct err *err)
{
#define PGSO_FUNCTION(name) { "PQ" #name, &ret->name },
	const struct library_function wanted[] = { PGSO_FUNCTIONS(PGSO_FUNCTION) };
#undef PGSO_FUNCTION
	void *so = library_open(FILE_NAME, "PostgreSQL needs libpq, version 14 or newer (Debian: libpq5)", err);

	return so ? library_find(so, FILE_NAME, wanted, sizeof wanted / sizeof wanted[0], err) : ERR_UNSUPPORTED;
}

#endif

/* pgso.c: libpq's functions. */
#include "config.h"

#ifdef HAVE_LIBPQ

#include "web/store/db/pgso.h"

#include "tracker/base/library.h"

int pgso_load(struct pgso *ret, struct err *err)
{
#define PGSO_FUNCTION(name) { "PQ" #name, &ret->name },
	const struct library_function wanted[] = { PGSO_FUNCTIONS(PGSO_FUNCTION) };
#undef PGSO_FUNCTION
	const struct library library = { "libpq.so.5", "PostgreSQL needs libpq, version 14 or newer (Debian: libpq5)" };

	return library_load(&library, wanted, sizeof wanted / sizeof wanted[0], err);
}

#endif

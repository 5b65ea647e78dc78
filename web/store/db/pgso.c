/* pgso.c: dlopen of libpq. */
#include "config.h"

#ifdef HAVE_LIBPQ

#include "web/store/db/pgso.h"

#include <dlfcn.h>
#include <string.h>

int pgso_load(struct pgso *ret, struct err *err)
{
	void *so = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), *at;

	if (!so)
		return err_set(err, ERR_UNSUPPORTED, "PostgreSQL needs libpq (Debian: libpq5): %s", dlerror());
#define PGSO_FIND(name)                                                                                             \
	at = dlsym(so, "PQ" #name);                                                                                 \
	if (!at)                                                                                                    \
		return err_set(err, ERR_UNSUPPORTED, "libpq.so.5 lacks PQ" #name ": version 14 or newer is wanted"); \
	memcpy(&ret->name, &at, sizeof at);
	PGSO_FUNCTIONS(PGSO_FIND)
#undef PGSO_FIND
	return 0;
}

#endif

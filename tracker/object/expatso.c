/* expatso.c: expat's functions. */
#include "config.h"

#ifdef HAVE_EXPAT

#include "tracker/object/expatso.h"

#include "tracker/base/library.h"

#define FILE_NAME "libexpat.so.1"

int expatso_load(struct expatso *ret, struct err *err)
{
#define EXPATSO_FUNCTION(name) { "XML_" #name, &ret->name },
	const struct library_function wanted[] = { EXPATSO_FUNCTIONS(EXPATSO_FUNCTION) };
#undef EXPATSO_FUNCTION
	void *so = library_open(FILE_NAME, "object stores need expat (Debian: libexpat1)", err);

	return so ? library_find(so, FILE_NAME, wanted, sizeof(wanted) / sizeof(wanted[0]), err) : ERR_UNSUPPORTED;
}

#endif

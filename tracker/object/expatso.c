/* expatso.c: loads expat's functions. */
#include "tracker/object/expatso.h"

#include "tracker/base/library.h"

int expatso_load(struct expatso *ret, struct err *err)
{
#define EXPATSO_FUNCTION(name) { "XML_" #name, &ret->name },
	const struct library_function wanted[] = { EXPATSO_FUNCTIONS(EXPATSO_FUNCTION) };
#undef EXPATSO_FUNCTION
	const struct library library = { "libexpat.so.1", "object stores need expat (Debian: libexpat1)" };

	return library_load(&library, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

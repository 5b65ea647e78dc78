/* expatso.h: expat, loaded with the first client of an object store; programs without one do not need it. */
#ifndef DPT_OBJECT_EXPATSO_H
#define DPT_OBJECT_EXPATSO_H

#include <expat.h>

#include "tracker/base/err.h"

#define EXPATSO_FUNCTIONS(X)                                                                             \
	X(ErrorString) X(GetErrorCode) X(Parse) X(ParserCreate) X(ParserFree) X(SetCharacterDataHandler) \
	X(SetElementHandler) X(SetStartDoctypeDeclHandler) X(SetUserData) X(StopParser)

struct expatso {
#define EXPATSO_MEMBER(name) __typeof__(&XML_##name) name;
	EXPATSO_FUNCTIONS(EXPATSO_MEMBER)
#undef EXPATSO_MEMBER
};

/* Returns 0, or ERR_UNSUPPORTED with the loader's reason. The library stays loaded until the process ends. */
int expatso_load(struct expatso *ret, struct err *err);

#endif

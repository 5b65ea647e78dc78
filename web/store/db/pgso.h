/* pgso.h: libpq, opened when a store's place is an address: whoever keeps a file neither loads nor needs it. */
#ifndef DPT_STORE_PGSO_H
#define DPT_STORE_PGSO_H

#include <libpq-fe.h>

#include "tracker/base/err.h"

#define PGSO_FUNCTIONS(X)                                                                                            \
	X(backendPID) X(clear) X(cmdStatus) X(cmdTuples) X(connectdbParams) X(conninfoFree) X(conninfoParse)         \
	X(consumeInput) X(db) X(enterPipelineMode) X(errorMessage) X(exec) X(exitPipelineMode) X(finish) X(freemem)  \
	X(ftype) X(getResult) X(getisnull) X(getlength) X(getvalue) X(host) X(isBusy) X(notifies) X(ntuples)         \
	X(pipelineSync) X(resultErrorField) X(resultStatus) X(sendPrepare) X(sendQueryPrepared)                      \
	X(setNoticeProcessor) X(socket) X(status)

struct pgso {
#define PGSO_MEMBER(name) __typeof__(&PQ##name) name;
	PGSO_FUNCTIONS(PGSO_MEMBER)
#undef PGSO_MEMBER
};

/* 0 or ERR_UNSUPPORTED with the loader's reason. The library stays loaded for the life of the process. */
int pgso_load(struct pgso *ret, struct err *err);

#endif

/* comm_module.h: finds and loads modules at run time: backends, and transports between machines. */
#ifndef DPT_COMM_COMM_MODULE_H
#define DPT_COMM_COMM_MODULE_H

#include "tracker/base/err.h"

/* Loads dptrain_NAME.so from $DPTRAIN_BACKEND_PATH, from next to the executable or from the installed module folder,
 * and finds its symbol. kind ("backend", "transport") is for messages. ERR_NOENT: not found; ERR_UNSUPPORTED: it does
 * not load or lacks the symbol. It stays loaded until the process ends or module_drop. */
struct module {
	void *handle;
	const void *symbol;
	char path[4096];
};

int module_load(struct module *ret, const char *kind, const char *name, const char *symbol, struct err *err);
void module_drop(struct module *m);

#endif

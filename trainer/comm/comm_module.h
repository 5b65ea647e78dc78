/* comm_module.h: where the modules that the program loads while it runs lie: backends, and links between machines. */
#ifndef DPT_COMM_COMM_MODULE_H
#define DPT_COMM_COMM_MODULE_H

#include "tracker/base/err.h"

/* Loads dptrain_NAME.so from $DPTRAIN_BACKEND_PATH, from beside the executable or from the installed module folder and
 * finds its symbol; kind ("backend", "transport") is for messages. ERR_NOENT: there is none; ERR_UNSUPPORTED: it does
 * not load or lacks the symbol. It stays loaded until the process ends, but for module_drop. */
struct module {
	void *handle;
	const void *symbol;
	char path[4096];
};

int module_load(struct module *ret, const char *kind, const char *name, const char *symbol, struct err *err);
void module_drop(struct module *m);

#endif

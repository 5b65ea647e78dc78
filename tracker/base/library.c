/* library.c: dlopen and dlsym. */
#include "tracker/base/library.h"

#include <dlfcn.h>
#include <string.h>

void *library_open(const char *file, const char *need, struct err *err)
{
	void *so = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!so)
		err_set(err, ERR_UNSUPPORTED, "%s: %s", need, dlerror());
	return so;
}

int library_find(void *so, const char *file, const struct library_function *all, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		void *at = dlsym(so, all[i].name);

		if (!at)
			return err_set(err, ERR_UNSUPPORTED, "%s lacks %s: a newer one is needed", file, all[i].name);
		memcpy(all[i].to, &at, sizeof(at));
	}
	return 0;
}

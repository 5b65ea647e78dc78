/* SPDX-License-Identifier: Apache-2.0 */
/* library.c: dlopen and dlsym. */
#include "tracker/base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "config.h"

#ifdef STATIC_PROGRAM
#define STATIC_REASON "the static file dptrack opens no libraries: use the wheel dptrack or Debian's package dptrack"
#else
#define STATIC_REASON NULL
#endif

int library_load(const struct library *l, const struct library_function *all, size_t n, struct err *err)
{
	void *so = dlopen(l->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!so)
		return err_set(err, ERR_UNSUPPORTED, "%s: %s", l->need, STATIC_REASON ? STATIC_REASON : dlerror());
	for (size_t i = 0; i < n; i++) {
		void *at = dlsym(so, all[i].name);

		if (!at)
			return err_set(err, ERR_UNSUPPORTED, "%s lacks %s: install a newer version", l->file,
				       all[i].name);
		memcpy(all[i].to, &at, sizeof(at));
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* built_modules.h: C tests use the modules of their build, wherever their executable is. */
#ifndef DPT_TESTS_BUILT_MODULES_H
#define DPT_TESTS_BUILT_MODULES_H

#include <stdio.h>
#include <stdlib.h>

/* Call it before the first module is loaded. A caller's own DPTRAIN_BACKEND_PATH stays. */
static inline void use_built_modules(void)
{
	const char *build = getenv("builddir");
	char path[4096];

	snprintf(path, sizeof(path), "%s/.libs", build ? build : ".");
	setenv("DPTRAIN_BACKEND_PATH", path, 0);
}

#endif

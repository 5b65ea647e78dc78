/* SPDX-License-Identifier: Apache-2.0 */
/* link.c: finds and loads dptrain_NAME.so; prepares transports. */
#include "trainer/comm/link.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef DPTRAIN_MODULE_DIR
#define DPTRAIN_MODULE_DIR "/usr/local/lib/dptrack"
#endif

#define PATH_BYTES sizeof(((struct module *)0)->path)
#define NAME_ROOM 64 /* room for the path below a folder */

static bool is_module_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Writes the folder of the running executable, without a slash at the end; "": unknown. */
static void find_exe_folder(char *dir, size_t n)
{
	ssize_t len = readlink("/proc/self/exe", dir, n - 1);

	dir[len > 0 ? len : 0] = '\0';
	if (strrchr(dir, '/'))
		*strrchr(dir, '/') = '\0';
}

/* Finds the first folder that has the module. In a build tree it is .libs next to libtool's wrapper or the program; in
 * an installed tree, wherever that was moved, lib/dptrack next to bin. */
static bool find_module(const char *name, char *path, size_t n)
{
	const char *given = getenv("DPTRAIN_BACKEND_PATH");
	char exe[PATH_BYTES - NAME_ROOM];

	if (given && given[0]) {
		snprintf(path, n, "%s/dptrain_%s.so", given, name);
		return is_module_file(path);
	}
	find_exe_folder(exe, sizeof(exe));
	static const char *const below[] = { "/.libs", "", "/../lib/dptrack" };
	for (size_t i = 0; exe[0] && i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, n, "%s%s/dptrain_%.8s.so", exe, below[i], name);
		if (is_module_file(path))
			return true;
	}
	snprintf(path, n, DPTRAIN_MODULE_DIR "/dptrain_%s.so", name);
	return is_module_file(path);
}

int module_load(struct module *ret, const char *kind, const char *name, const char *symbol, struct err *err)
{
	struct module m;

	if (!find_module(name, m.path, sizeof(m.path)))
		return err_set(err, ERR_NOENT,
			       "%s %s is not installed (no dptrain_%s.so next to the program%s, in %s or "
			       "$DPTRAIN_BACKEND_PATH)",
			       kind, name, name,
			       access("/proc/self", F_OK) ? ", whose folder is unknown because /proc is missing" : "",
			       DPTRAIN_MODULE_DIR);
	m.handle = dlopen(m.path, RTLD_NOW | RTLD_LOCAL);
	if (!m.handle)
		return err_set(err, ERR_UNSUPPORTED, "%s module %s does not load: %s", kind, m.path, dlerror());
	m.symbol = dlsym(m.handle, symbol);
	if (!m.symbol) {
		dlclose(m.handle);
		return err_set(err, ERR_UNSUPPORTED, "%s module %s has no symbol %s: it belongs to another version",
			       kind, m.path, symbol);
	}
	*ret = m;
	return 0;
}

void module_drop(struct module *m)
{
	dlclose(m->handle);
	m->handle = NULL;
}

/* ---- transports ---- */

/* UCX reads these variables while it is loaded. Only dptrain reports a rank that ends, and UCX installs no signal
 * handlers. Large receive segments cost the ranks less CPU time for long messages over TCP: zero-copy sends
 * (ucx/ucx_module.c) leave in pieces as long as the receiver takes. */
static void prepare_ucx(void)
{
	setenv("UCX_LOG_LEVEL", "fatal", 0);
	setenv("UCX_ERROR_SIGNALS", "", 0);
	setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
	setenv("UCX_TCP_RX_SEG_SIZE", "256k", 0);
}

int link_load(const struct link_module **ret, const char *name, struct err *err)
{
	const struct link_module *l;
	struct module m;
	int rc;

	if (!strcmp(name, "ucx"))
		prepare_ucx();
	rc = module_load(&m, "transport", name, LINK_SYMBOL, err);

	if (rc)
		return rc;
	l = m.symbol;
	if (l->abi != LINK_ABI) {
		rc = err_set(err, ERR_UNSUPPORTED,
			     "transport module %s has ABI %d, this program needs %d: build both from one source",
			     m.path, l->abi, LINK_ABI);
		module_drop(&m);
		return rc;
	}
	*ret = l;
	return 0;
}

/* loader.c: finds a backend by name: ref is built in, the others are modules beside the executable, in the installed
 * module folder or in $DPTRAIN_BACKEND_PATH. A module stays loaded until the process ends. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/backends/backend.h"

#ifndef DPTRAIN_MODULE_DIR
#define DPTRAIN_MODULE_DIR "/usr/local/lib/dptrack"
#endif

#define PATH_BYTES 4096
#define NAME_ROOM 64 /* for what is put behind a folder */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Folder of the running executable, without a slash at the end; "" when unknown. */
static void exe_folder(char *dir, size_t n)
{
	ssize_t len = readlink("/proc/self/exe", dir, n - 1);

	dir[len > 0 ? len : 0] = '\0';
	if (strrchr(dir, '/'))
		*strrchr(dir, '/') = '\0';
}

/* The first folder that holds the module. A build tree has it in .libs, beside libtool's wrapper or the program; an
 * installed tree, wherever it was moved to, in lib/dptrack beside bin. */
static bool find_module(const char *name, char *path, size_t n)
{
	const char *given = getenv("DPTRAIN_BACKEND_PATH");
	char exe[PATH_BYTES - NAME_ROOM];

	if (given && given[0]) {
		snprintf(path, n, "%s/dptrain_%s.so", given, name);
		return is_file(path);
	}
	exe_folder(exe, sizeof(exe));
	static const char *const below[] = { "/.libs", "", "/../lib/dptrack", "/../.libs", "/../../.libs",
					     "/../../../.libs" };
	for (size_t i = 0; exe[0] && i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, n, "%s%s/dptrain_%.8s.so", exe, below[i], name);
		if (is_file(path))
			return true;
	}
	snprintf(path, n, DPTRAIN_MODULE_DIR "/dptrain_%s.so", name);
	return is_file(path);
}

static int check_abi(const struct backend *b, const char *path, struct err *err)
{
	if (b->abi != BACKEND_ABI)
		return err_set(err, ERR_UNSUPPORTED,
			       "backend module %s has ABI %d, this program needs %d: build both from one source", path,
			       b->abi, BACKEND_ABI);
	if (b->op_count != OP_COUNT)
		return err_set(err, ERR_UNSUPPORTED,
			       "backend module %s knows %d ops, this program %d: build both from one source", path,
			       b->op_count, (int)OP_COUNT);
	return 0;
}

static int open_module(const struct backend **ret, const char *name, struct err *err)
{
	const struct backend *b;
	char path[PATH_BYTES];
	void *handle;
	int rc;

	if (!find_module(name, path, sizeof(path)))
		return err_set(err, ERR_NOENT,
			       "backend %s is not installed (no dptrain_%s.so beside the program, in %s or "
			       "$DPTRAIN_BACKEND_PATH)",
			       name, name, DPTRAIN_MODULE_DIR);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return err_set(err, ERR_UNSUPPORTED, "backend module %s does not load: %s", path, dlerror());
	b = dlsym(handle, BACKEND_SYMBOL);
	if (!b) {
		dlclose(handle);
		return err_set(err, ERR_UNSUPPORTED, "backend module %s has no symbol %s: it is of another version",
			       path, BACKEND_SYMBOL);
	}
	rc = check_abi(b, path, err);
	if (rc)
		dlclose(handle);
	else
		*ret = b;
	return rc;
}

static int load_one(const struct backend **ret, const char *name, struct err *err)
{
	const struct backend *b = &backend_ref;
	char reason[256] = "";
	int rc = 0;

	if (strcmp(name, "ref") != 0)
		rc = open_module(&b, name, err);
	if (rc)
		return rc;
	if (b->probe && b->probe(reason, sizeof(reason)))
		return err_set(err, ERR_UNSUPPORTED, "backend %s cannot run here: %s", name, reason);
	*ret = b;
	return 0;
}

static int load_auto(struct backend_choice *ret, struct err *err)
{
	static const char *const order[] = { "cuda", "cpu", "ref" };
	struct backend_choice choice = { NULL, "" };
	struct err why = ERR_INIT;
	size_t used = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (load_one(&choice.backend, order[i], &why) == 0) {
			*ret = choice;
			return 0;
		}
		if (used < sizeof(choice.why))
			used += (size_t)snprintf(choice.why + used, sizeof(choice.why) - used, "%s%s", used ? "; " : "",
						 why.text);
	}
	return err_set(err, ERR_UNSUPPORTED, "no backend can run here: %s", choice.why);
}

int backend_load(struct backend_choice *ret, const char *name, struct err *err)
{
	struct backend_choice choice = { NULL, "" };
	int rc;

	if (strcmp(name, "auto") == 0)
		return load_auto(ret, err);
	if (strcmp(name, "ref") != 0 && strcmp(name, "cpu") != 0 && strcmp(name, "cuda") != 0)
		return err_set(err, ERR_USAGE, "unknown backend \"%s\" (auto, cuda, cpu, ref)", name);
	rc = load_one(&choice.backend, name, err);
	if (!rc)
		*ret = choice;
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* backend_loader.c: finds a backend by name: ref is built in, the others are modules. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/backends/backend.h"
#include "trainer/comm/link.h"

static int check_backend_abi(const struct backend *b, const char *path, struct err *err)
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

static int open_backend_module(const struct backend **ret, const char *name, struct err *err)
{
	struct module m;
	int rc = module_load(&m, "backend", name, BACKEND_SYMBOL, err);

	if (rc)
		return rc;
	rc = check_backend_abi(m.symbol, m.path, err);
	if (rc)
		module_drop(&m);
	else
		*ret = m.symbol;
	return rc;
}

int backend_find(const struct backend **ret, const char *name, struct err *err)
{
	*ret = &backend_ref;
	return strcmp(name, "ref") ? open_backend_module(ret, name, err) : 0;
}

static int load_usable_backend(const struct backend **ret, const char *name, struct err *err)
{
	const struct backend *b = NULL;
	char reason[256] = "";
	int rc = backend_find(&b, name, err);

	if (rc)
		return rc;
	if (b->probe && b->probe(reason, sizeof(reason)))
		return err_set(err, ERR_UNSUPPORTED, "backend %s cannot run here: %s", name, reason);
	*ret = b;
	return 0;
}

static int load_best_backend(struct backend_choice *ret, struct err *err)
{
	static const char *const order[] = { "cuda", "cpu", "ref" };
	struct backend_choice choice = { NULL, "" };
	struct err why = ERR_INIT;
	size_t used = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (load_usable_backend(&choice.backend, order[i], &why) == 0) {
			*ret = choice;
			return 0;
		}
		if (used < sizeof(choice.why) && why.code != ERR_NOENT) /* not installed: not worth a message */
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
		return load_best_backend(ret, err);
	if (strcmp(name, "ref") != 0 && strcmp(name, "cpu") != 0 && strcmp(name, "cuda") != 0)
		return err_set(err, ERR_USAGE, "unknown backend \"%s\" (auto, cuda, cpu, ref)", name);
	rc = load_usable_backend(&choice.backend, name, err);
	if (!rc)
		*ret = choice;
	return rc;
}

int backend_devices(const char *name, int *ret, struct err *err)
{
	struct err ignored = ERR_INIT;
	struct backend_choice c;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(backend_load(&c, name, &ignored) || !c.backend->count ? 0 : c.backend->count());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return err_set_errno(err, errno, "cannot count the devices of backend %s", name);
	*ret = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	return 0;
}

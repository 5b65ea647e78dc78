/* link.c: loads a transport module, which carries bytes between machines. */
#include "trainer/comm/link.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/comm/comm_module.h"

/* UCX reads these variables while it is loaded. Only dptrain reports a rank that ends, and UCX installs no signal
 * handlers. Large receive segments cost the ranks less CPU time for long messages over TCP: zero-copy sends
 * (ucx/module.c) leave in pieces as long as the receiver takes. */
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

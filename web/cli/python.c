/* SPDX-License-Identifier: Apache-2.0 */
/* python.c: commands that are modules of the Python package. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "tracker/mem/mem.h"
#include "web/cli/cli.h"

/* Its arguments: the module, what is missing without it, those of the module. The current folder may hold anybody's
 * data: no module comes from there. */
static const char start[] = "import sys\n"
			    "sys.path[:] = [p for p in sys.path if p]\n"
			    "module, missing = sys.argv[1:3]\n"
			    "del sys.argv[1:3]\n"
			    "try:\n"
			    "    from importlib.util import find_spec\n"
			    "    found = find_spec(module)\n"
			    "except (ImportError, SyntaxError):\n"
			    "    found = None\n"
			    "if not found:\n"
			    "    sys.stderr.write('dptrack: error: ' + missing + '\\n')\n"
			    "    sys.exit(2)\n"
			    "import runpy\n"
			    "runpy.run_module(module, run_name='__main__', alter_sys=True)\n";

int python_run(const char *module, const char *extra, int argc, const char *const *argv, struct err *err)
{
	const char *named = getenv("DPTRACK_PYTHON"), *program = named && *named ? named : "python3";
	const char **words = mem_array((size_t)argc + 6, sizeof(*words));
	char missing[600];

	snprintf(missing, sizeof(missing),
		 "%.200s lacks the package dptrack " PACKAGE_VERSION ": pip install './dptrack-" PACKAGE_VERSION
		 "-….whl%s', or set DPTRACK_PYTHON to a Python that has it",
		 program, extra);
	words[0] = program;
	words[1] = "-c";
	words[2] = start;
	words[3] = module;
	words[4] = missing;
	memcpy(words + 5, argv, (size_t)argc * sizeof(*argv));
	words[argc + 5] = NULL;
	execvp(program, (char *const *)(uintptr_t)words);
	err_set(err, ERR_NOENT, "cannot start %.200s: %s: %s", program, strerror(errno), missing);
	free(words);
	return ERR_NOENT;
}

/* run_files.h: files that are kept with a run (dptrack_file), brought to a server that has the journals
 * which tell of them: it says which. */
#ifndef DPT_CLI_BRING_RUN_FILES_H
#define DPT_CLI_BRING_RUN_FILES_H

#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/sink/http_client.h"

struct run_files {
	struct http *http;
	const char *run;    /* its id */
	const char *folder; /* where its journals lie, and the files below files/ */
};

struct run_files_result {
	uint64_t files, bytes; /* that the journals tell of and the server has, before or now */
	uint64_t gone;	       /* … and that are here no more, or not as the journals say */
};

/* Sends those that the server has not, or not like this. Adds to *ret. ERR_PEER: what is left is sent when it is called
 * again. */
int run_files_send(const struct run_files *k, struct run_files_result *ret, struct err *err);

#endif

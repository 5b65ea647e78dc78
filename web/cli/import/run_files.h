/* run_files.h: uploads the files that a program stored with its run (dptrack_file). The server has the run's journals
 * and lists the files. */
#ifndef DPT_CLI_BRING_RUN_FILES_H
#define DPT_CLI_BRING_RUN_FILES_H

#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/sink/http_client.h"

struct kept_upload {
	struct http *http;
	const char *run;    /* id of the run */
	const char *folder; /* folder of its journals; the files are below files/ */
};

struct run_files_result {
	uint64_t files, bytes; /* files of the journals that the server has, before or now */
	uint64_t gone;	       /* files of the journals that are missing here or differ from the journals */
};

/* Sends the files that the server lacks or has in another version. Adds to *ret. After ERR_PEER a repeated call sends
 * the rest. */
int run_files_send(const struct kept_upload *k, struct run_files_result *ret, struct err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* journals.h: finds journals below a folder and sends them to a server, from the offset that the server has. */
#ifndef DPT_CLI_JOURNALS_H
#define DPT_CLI_JOURNALS_H

#include "tracker/sink/http_client.h"

/* Writer of a journal, from its first record. */
struct journal_id {
	bool ours; /* false: an event file of another program; the texts are empty */
	char run[33], writer[33];
	char experiment[512], name[512];
};

/* ERR_CORRUPT: not an event file. */
int journal_identify(const char *path, struct journal_id *ret, struct err *err);

/* Calls fn for every event file and journal below root, in the order of names; paths include root. A failure of fn ends
 * the walk. */
typedef int journal_fn(void *user, const char *path, struct err *err);
int journals_each(const char *root, journal_fn *fn, void *user, struct err *err);

/* Sends the part of a journal that the server lacks. *ret_bytes: the part that it has now. Retries a server that does
 * not answer for patience_s after the last progress. Leaves a torn last record to its writer. */
struct journal_push {
	struct http *http;
	const char *path, *run, *writer;
	double patience_s;
};

int journal_push(const struct journal_push *p, uint64_t *ret_bytes, struct err *err);

/* Opens the server of --url, or of DPTRACK_URL, with the token of http_token. */
int journals_server(struct http **ret, const char *url, struct err *err);

#endif

/* journals.h: files of runs below a folder, brought to a server record by record, on from where it has them. */
#ifndef DPT_CLI_JOURNALS_H
#define DPT_CLI_JOURNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/sink/http_client.h"

/* Who writes a journal, from its first record. */
struct journal_id {
	bool ours; /* false: an event file of another program; the texts are empty */
	char run[33], writer[33];
	char experiment[512], name[512];
};

/* ERR_CORRUPT: no event file at all. */
int journal_identify(const char *path, struct journal_id *ret, struct err *err);

/* Calls fn for every event file and journal below root in the order of names, paths below root. A failure of fn ends
 * it. */
typedef int journal_fn(void *user, const char *path, struct err *err);
int journals_each(const char *root, journal_fn *fn, void *user, struct err *err);

/* Sends what the server lacks of a journal. *ret_bytes: what it has now. A server that does not answer is asked again
 * for patience_s after the last progress. A torn last record is left for its writer. */
struct journal_push {
	struct http *http;
	const char *path, *run, *writer;
	double patience_s;
};

int journal_push(const struct journal_push *p, uint64_t *ret_bytes, struct err *err);

/* The server of --url, or of DPTRACK_URL, with the token of DPTRACK_TOKEN. */
int journals_server(struct http **ret, const char *url, struct err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* journals.c: sends journals to a server, for `dptrack sync` and `dptrack import`. */
#include "web/cli/journals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"
#include "tracker/sink/http_client.h"
#include "tracker/sink/sink.h"
#include "web/store/follow/folder_tree.h"

#define FIRST_RECORD_MAX 65536
#define REQUEST_LIMIT_S 60.0
#define PAUSE_FIRST_S 0.2
#define PAUSE_MOST_S 10.0

static void copy_event_text(char *to, size_t room, struct event_text t)
{
	snprintf(to, room, "%.*s", (int)(t.len < room ? t.len : room - 1), t.at);
}

/* Reads the header in the first record, if libdptrack wrote it. */
static int read_journal_identity(const void *bytes, size_t n, struct journal_id *ret)
{
	struct event_item item;
	struct record rec;
	struct event ev;
	size_t at = 0;
	int rc;

	if (record_next(bytes, n, &at, &rec) != RECORD_OK || event_open(&ev, rec.payload, rec.payload_bytes))
		return ERR_CORRUPT;
	while ((rc = event_next(&ev, &item)) > 0) {
		if (item.kind != EVENT_HEADER)
			continue;
		ret->ours = true;
		copy_event_text(ret->run, sizeof(ret->run), item.header->run_id);
		copy_event_text(ret->writer, sizeof(ret->writer), item.header->writer_id);
		copy_event_text(ret->experiment, sizeof(ret->experiment), item.header->experiment);
		copy_event_text(ret->name, sizeof(ret->name), item.header->run_name);
	}
	return rc;
}

int journal_identify(const char *path, struct journal_id *ret, struct err *err)
{
	char bytes[FIRST_RECORD_MAX];
	FILE *f = fopen(path, "rbe");
	size_t n;

	memset(ret, 0, sizeof(*ret));
	if (!f)
		return err_set_errno(err, errno, "cannot read %s", path);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	if (read_journal_identity(bytes, n, ret))
		return err_set(err, ERR_CORRUPT, "%s: expected a complete event record at the start", path);
	return 0;
}

struct journal_walk {
	journal_fn *fn;
	void *user;
	struct err *err;
	int rc;
};

static void visit_journal(void *arg, const struct tree_file *f)
{
	struct journal_walk *w = arg;

	if (!w->rc)
		w->rc = w->fn(w->user, f->path, w->err);
}

int journals_each(const char *root, journal_fn *fn, void *user, struct err *err)
{
	struct journal_walk w = { fn, user, err, 0 };
	struct tree *t = tree_open(&(struct tree_opts){ root, false, visit_journal, &w });
	int rc = tree_scan(t, err);
	tree_close(t);
	return rc ? rc : w.rc;
}

/* Sends requests until the server has all complete records. */
static int send_whole_journal(struct sender *s, const struct journal_push *p, uint64_t bytes, struct err *err)
{
	double last = clock_mono_s(), pause = PAUSE_FIRST_S, asked;

	while (sender_durable(s) < bytes) {
		struct err why = ERR_INIT;

		switch (sender_step(s, p->http, clock_mono_s() + REQUEST_LIMIT_S, &asked, &why)) {
		case SENDER_SENT:
			last = clock_mono_s();
			pause = PAUSE_FIRST_S;
			continue;
		case SENDER_LOCAL:
			return why.code == ERR_CORRUPT ? 0 : err_set(err, why.code, "%s", why.text);
		case SENDER_REFUSED:
			return err_set(err, ERR_PEER, "%s: %s", p->path, why.text);
		case SENDER_RETRY:
			break;
		}
		if (clock_mono_s() - last > p->patience_s)
			return err_set(err, ERR_PEER, "%s: %s: run the command again to send the rest", p->path,
				       why.text);
		if (pause == PAUSE_FIRST_S)
			log_warn("%s: trying again for up to %g s", why.text, p->patience_s);
		clock_sleep_s(asked > 0 && asked < PAUSE_MOST_S ? asked : pause);
		pause = pause * 2 < PAUSE_MOST_S ? pause * 2 : PAUSE_MOST_S;
	}
	return 0;
}

int journal_push(const struct journal_push *p, uint64_t *ret_bytes, struct err *err)
{
	struct sender *s = NULL;
	struct stat st;
	int rc;

	if (stat(p->path, &st))
		return err_set_errno(err, errno, "cannot read %s", p->path);
	rc = sender_new(&s, p->path, p->run, p->writer, err);
	if (rc)
		return rc;
	sender_limit(s, (uint64_t)st.st_size);
	rc = send_whole_journal(s, p, (uint64_t)st.st_size, err);
	*ret_bytes = sender_durable(s);
	sender_free(s);
	return rc;
}

int journals_server(struct http **ret, const char *url, struct err *err)
{
	const char *from = getenv("DPTRACK_URL");
	char token[HTTP_TOKEN_BYTES];

	if (!url)
		url = from && *from ? from : NULL;
	if (!url)
		return err_set(err, ERR_USAGE, "no server given: use --url URL or set DPTRACK_URL");
	return http_open(ret, url, http_token(url, token), err);
}

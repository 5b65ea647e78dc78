/* SPDX-License-Identifier: Apache-2.0 */
/* sender.c: reads whole records of one journal and posts them from the server's offset on. */
#include "tracker/sink/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracker/curl/curl_request.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"

#define ID_BYTES 33
#define INTERVAL_MAX_S 60.0 /* upper limit for the server's interval */
#define FIRST_BYTES 16384u /* a small first request: the server may already have the whole journal and returns its
			    * offset */

struct sender {
	char *path;
	char run_id[ID_BYTES];
	char writer_id[ID_BYTES];
	uint64_t durable; /* bytes that the server acknowledged */
	uint64_t limit;
	double interval_s;
};

int sender_new(struct sender **ret, const char *path, const char *run_id, const char *writer_id, struct err *err)
{
	struct sender *s = calloc(1, sizeof(*s));

	if (s)
		s->path = strdup(path);
	if (!s || !s->path) {
		sender_free(s);
		return err_nomem(err, NULL);
	}
	snprintf(s->run_id, sizeof(s->run_id), "%s", run_id);
	snprintf(s->writer_id, sizeof(s->writer_id), "%s", writer_id);
	s->interval_s = SENDER_INTERVAL_S;
	*ret = s;
	return 0;
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	free(s->path);
	free(s);
}

void sender_limit(struct sender *s, uint64_t bytes)
{
	s->limit = bytes;
}

uint64_t sender_durable(const struct sender *s)
{
	return s->durable;
}

double sender_interval_s(const struct sender *s)
{
	return s->interval_s;
}

/* Reads [durable, durable + want), or less at the end of the file. */
static int read_journal_range(const struct sender *s, size_t want, struct buf *to, struct err *err)
{
	int fd = open(s->path, O_RDONLY | O_CLOEXEC);
	char *at = buf_reserve(to, want);
	int rc = 0;

	if (fd < 0)
		return err_set_errno(err, errno, "cannot read the journal %s", s->path);
	if (!at)
		rc = err_nomem(err, NULL);
	while (!rc && to->len < want) {
		ssize_t n = pread(fd, to->data + to->len, want - to->len, (off_t)(s->durable + to->len));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = err_set_errno(err, errno, "cannot read the journal %s", s->path);
		if (n <= 0)
			break;
		to->len += (size_t)n;
	}
	close(fd);
	return rc;
}

/* Reads the next whole records: as many as fit into one request, at least one. */
static int read_whole_records(const struct sender *s, struct buf *to, struct err *err)
{
	uint64_t left = s->limit - s->durable, most = s->durable ? LIMIT_journal_send_bytes : FIRST_BYTES;
	size_t want = (size_t)(left < most ? left : most), at = 0, whole;
	struct record rec;
	int rc = read_journal_range(s, want, to, err);

	if (rc)
		return rc;
	whole = record_whole(to->data, to->len);
	if (!whole && record_next(to->data, to->len, &at, &rec) == RECORD_MORE && rec.frame_bytes > to->len &&
	    rec.frame_bytes <= left && rec.frame_bytes <= LIMIT_record_bytes + RECORD_FRAME_BYTES) {
		to->len = 0;
		rc = read_journal_range(s, (size_t)rec.frame_bytes, to, err);
		if (rc)
			return rc;
		whole = record_whole(to->data, to->len);
	}
	if (!whole)
		return err_set(err, ERR_CORRUPT, "%s has no whole record at byte %llu", s->path,
			       (unsigned long long)s->durable);
	to->len = whole;
	return 0;
}

/* Finds the number after the quoted name in {"durable":N,"interval_s":S}; NULL: none. */
static const char *find_reply_number(const struct http_reply *reply, const char *name)
{
	const char *at = reply->body.data ? strstr(reply->body.data, name) : NULL;

	if (!at)
		return NULL;
	at += strlen(name);
	at += strspn(at, " :");
	return *at >= '0' && *at <= '9' ? at : NULL;
}

static bool parse_durable_offset(const struct http_reply *reply, uint64_t *ret)
{
	const char *at = find_reply_number(reply, "\"durable\"");

	if (at)
		*ret = strtoull(at, NULL, 10);
	return at != NULL;
}

/* Parses digits with a decimal point, independent of the host program's locale. */
static double parse_send_interval(const struct http_reply *reply)
{
	const char *at = find_reply_number(reply, "\"interval_s\"");
	double s = 0, unit = 1;

	if (!at)
		return SENDER_INTERVAL_S;
	for (; *at >= '0' && *at <= '9' && s < INTERVAL_MAX_S; at++)
		s = s * 10 + (*at - '0');
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9' && unit > 1e-6; at++)
			s += (*at - '0') * (unit /= 10);
	return s < SENDER_INTERVAL_S ? SENDER_INTERVAL_S : s < INTERVAL_MAX_S ? s : INTERVAL_MAX_S;
}

static enum sender_step classify_journal_reply(struct sender *s, const struct http_reply *reply, struct err *err)
{
	char reason[256];
	uint64_t durable;

	if ((reply->status / 100 == 2 || reply->status == 409) && parse_durable_offset(reply, &durable)) {
		bool moved = durable != s->durable;

		s->durable = durable;
		s->interval_s = parse_send_interval(reply);
		if (moved)
			return SENDER_SENT;
		err_set(err, ERR_PEER, "the server stays at byte %llu of %s", (unsigned long long)durable, s->path);
		return SENDER_RETRY;
	}
	http_reply_reason(reply, reason, sizeof(reason));
	err_set(err, ERR_PEER, "the server answered: %s", reason);
	return curl_may_pass(reply->status) ? SENDER_RETRY : SENDER_REFUSED;
}

enum sender_step sender_step(struct sender *s, struct http *h, double deadline_s, double *retry_after_s,
			     struct err *err)
{
	struct http_reply reply;
	struct buf body;
	char path[256];
	enum sender_step step = SENDER_LOCAL;

	if (retry_after_s)
		*retry_after_s = 0;
	buf_init(&body, LIMIT_record_bytes + RECORD_FRAME_BYTES);
	if (read_whole_records(s, &body, err))
		goto out;
	snprintf(path, sizeof(path), "/api/v1/runs/%s/journal?writer=%s&offset=%llu", s->run_id, s->writer_id,
		 (unsigned long long)s->durable);
	step = SENDER_RETRY;
	if (http_send(h,
		      &(struct http_request){ .method = "POST", .path = path, .body = body.data, .body_bytes = body.len,
					      .gzip = true, .deadline_s = deadline_s },
		      &reply, err))
		goto out;
	step = classify_journal_reply(s, &reply, err);
	if (retry_after_s)
		*retry_after_s = reply.retry_after_s;
	http_reply_done(&reply);
out:
	buf_done(&body);
	return step;
}

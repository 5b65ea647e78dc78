/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c: sets libcurl's options, parses headers and judges responses (RFC 9110, sections 13 and 14). */
#include "trainer/data/store/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/object/object.h"
#include "trainer/data/store/peers.h"

#define CONNECT_S 10L
#define REDIRECTS 5L

static size_t receive_transfer_body(char *bytes, size_t size, size_t n, void *user)
{
	struct transfer *t = user;

	n *= size;
	if (t->status >= 300 || !t->status) {
		size_t room = sizeof(t->text) - t->text_n, part = n < room ? n : room;

		memcpy(t->text + t->text_n, bytes, part);
		t->text_n += part;
		return n;
	}
	if (n > t->want.n - t->got) {
		t->too_long = true;
		return 0;
	}
	memcpy(t->want.to + t->got, bytes, n);
	if (t->want.sums) /* while the bytes are in the CPU cache */
		t->sum = crc32c(t->sum, bytes, n);
	t->got += n;
	return n;
}

/* Parses "bytes 0-7/1234", or "bytes 0-7/" and a star: total 0. */
static void parse_content_range(struct transfer *t, const char *value)
{
	unsigned long long begin, end, total = 0;
	char rest[2] = "";
	const int n = sscanf(value, "bytes %llu-%llu/%1[*]", &begin, &end, rest);

	t->has_range = n == 3 || sscanf(value, "bytes %llu-%llu/%llu", &begin, &end, &total) == 3;
	t->begin = t->has_range ? begin : 0;
	t->total = t->has_range ? total : 0;
}

/* Parses the response headers that matter. A status line resets them after a redirect. */
static size_t receive_transfer_header(char *line, size_t size, size_t n, void *user)
{
	struct transfer *t = user;
	char value[CURLSO_HEADER_BYTES];

	n *= size;
	if (n > 9 && !strncmp(line, "HTTP/", 5)) { /* of the next response, after a redirect */
		const char *space = memchr(line, ' ', n);

		t->status = space ? strtol(space, NULL, 10) : 0;
		t->etag[0] = '\0';
		t->has_range = false;
		t->text_n = 0;
	} else if (curlso_header(line, n, "ETag", value)) {
		snprintf(t->etag, sizeof(t->etag), "%.*s", TRANSFER_ETAG_BYTES - 1, value);
	} else if (curlso_header(line, n, "Last-Modified", value)) {
		snprintf(t->modified, sizeof(t->modified), "%.63s", value);
	} else if (curlso_header(line, n, "Content-Range", value)) {
		parse_content_range(t, value);
	} else if (curlso_header(line, n, "Content-Length", value) && t->status == 200) {
		t->total = strtoull(value, NULL, 10);
	} else if (curlso_header(line, n, "Retry-After", value)) {
		t->retry_after_s = strtod(value, NULL);
	} else if (curlso_header(line, n, "x-amz-bucket-region", value)) {
		snprintf(t->region, sizeof(t->region), "%.63s", value);
	} else if (curlso_header(line, n, PEER_SERVER_BLOCK_HEADER, value)) {
		snprintf(t->block, sizeof(t->block), "%.95s", value);
	} else if (curlso_header(line, n, "x-goog-generation", value)) {
		snprintf(t->generation, sizeof(t->generation), "%.23s", value);
	}
	return n;
}

void transfer_begin(struct transfer *t, const struct curlso *so, const struct transfer_want *w)
{
	const long connect_s = w->left_s < 1 ? 1 : w->left_s < CONNECT_S ? (long)w->left_s : CONNECT_S;
	char range[64];
	void *e = t->easy;

	t->want = *w;
	t->got = t->begin = t->total = 0;
	t->sum = 0;
	t->too_long = t->has_range = false;
	t->status = 0;
	t->retry_after_s = 0;
	t->etag[0] = t->error[0] = t->region[0] = t->modified[0] = t->generation[0] = t->block[0] = '\0';
	t->text_n = 0;
	so->easy_reset(e);
	snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)w->begin,
		 (unsigned long long)(w->begin + w->n - 1));
	so->easy_setopt(e, CURLSO_URL, w->url);
	so->easy_setopt(e, CURLSO_PATH_AS_IS, (long)!w->follows);
	if (!w->peer)
		so->easy_setopt(e, CURLSO_RANGE, range);
	else
		so->easy_setopt(e, CURLSO_PROXY, "");
	so->easy_setopt(e, CURLSO_PROTOCOLS, (long)CURLSO_HTTP_AND_HTTPS);
	so->easy_setopt(e, CURLSO_REDIR_PROTOCOLS, (long)CURLSO_HTTP_AND_HTTPS);
	so->easy_setopt(e, CURLSO_FOLLOWLOCATION, (long)w->follows);
	so->easy_setopt(e, CURLSO_MAXREDIRS, REDIRECTS);
	so->easy_setopt(e, CURLSO_NETRC, w->follows ? (long)CURLSO_NETRC_OPTIONAL : 0L);
	so->easy_setopt(e, CURLSO_NOSIGNAL, 1L);
	so->easy_setopt(e, CURLSO_USERAGENT, "dptrain");
	so->easy_setopt(e, CURLSO_CONNECTTIMEOUT, connect_s);
	so->easy_setopt(e, CURLSO_LOW_SPEED_LIMIT, 1L);
	so->easy_setopt(e, CURLSO_LOW_SPEED_TIME, w->stall_s < 1 ? 1L : (long)w->stall_s);
	so->easy_setopt(e, CURLSO_BUFFERSIZE, 512L << 10);
	so->easy_setopt(e, CURLSO_HTTPHEADER, w->headers);
	so->easy_setopt(e, CURLSO_ERRORBUFFER, t->error);
	if (w->ca)
		so->easy_setopt(e, CURLSO_CAINFO, w->ca);
	so->easy_setopt(e, CURLSO_WRITEFUNCTION, receive_transfer_body);
	so->easy_setopt(e, CURLSO_WRITEDATA, t);
	so->easy_setopt(e, CURLSO_HEADERFUNCTION, receive_transfer_header);
	so->easy_setopt(e, CURLSO_HEADERDATA, t);
}

static enum transfer_end judge_response_status(const struct transfer *t, char why[200])
{
	char code[OBJECT_CODE_BYTES];

	object_code(t->text, t->text_n, code);
	snprintf(why, 200, "the server returned status %ld%s%.100s", t->status, code[0] ? ", " : "", code);
	if (t->status == 429 || t->status == 503)
		return TRANSFER_BUSY;
	if (t->status == 408 || t->status >= 500)
		return TRANSFER_AGAIN;
	if (t->status == 412)
		snprintf(why, 200, "has changed since it was first read");
	else if (t->status == 416)
		snprintf(why, 200, "has been truncated (status 416)");
	return TRANSFER_REFUSED;
}

/* Checks range, length and ETag of a successful response. */
static enum transfer_end judge_response_body(struct transfer *t, char why[200])
{
	const struct transfer_want *w = &t->want;
	bool whole = t->status == 200 && !w->begin && t->total == w->n && t->got == w->n;

	if (t->status == 200 && !whole) {
		snprintf(why, 200, "the server ignored the requested range (status 200)");
		return TRANSFER_WRONG;
	}
	if (t->status != 200 && t->has_range && !t->total && !w->total) {
		snprintf(why, 200, "the server does not state the length (Content-Range: bytes …/*)");
		return TRANSFER_REFUSED;
	}
	if (t->status != 200 &&
	    (!t->has_range || t->begin != w->begin || (w->total && t->total && t->total != w->total))) {
		snprintf(why, 200, "the server returned another range than requested");
		return TRANSFER_WRONG;
	}
	if (t->got != w->n) {
		snprintf(why, 200, "the response ended after %llu of %llu bytes", (unsigned long long)t->got,
			 (unsigned long long)w->n);
		return TRANSFER_AGAIN;
	}
	if (w->etag[0] && t->etag[0] && strcmp(w->etag, t->etag) != 0) {
		snprintf(why, 200, "has changed since it was first read");
		return TRANSFER_REFUSED;
	}
	return TRANSFER_DONE;
}

enum transfer_end transfer_end(struct transfer *t, const struct curlso *so, int code, char why[200])
{
	if (t->too_long || (code == CURLSO_OK && t->status >= 200 && t->status < 300)) {
		t->got += t->too_long; /* makes the length wrong */
		return judge_response_body(t, why);
	}
	if (code == CURLSO_OK)
		return judge_response_status(t, why);
	snprintf(why, 200, "%.190s", t->error[0] ? t->error : so->easy_strerror(code));
	return curlso_for_good(code) ? TRANSFER_REFUSED : TRANSFER_AGAIN;
}

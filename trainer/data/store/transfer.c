/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c: stores the bytes of responses and judges them (RFC 9110, sections 13 and 14). */
#include "trainer/data/store/transfer.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/object/object.h"
#include "trainer/data/store/peers.h"

#define CONNECT_S 10.0

static bool receive_transfer_body(void *user, const char *bytes, size_t n)
{
	struct transfer *t = user;
	const long status = t->curl.answer.status;

	if (status >= 300 || !status) {
		size_t room = sizeof(t->text) - t->text_n, part = n < room ? n : room;

		memcpy(t->text + t->text_n, bytes, part);
		t->text_n += part;
		return true;
	}
	if (n > t->want.n - t->got) {
		t->too_long = true;
		return false;
	}
	memcpy(t->want.to + t->got, bytes, n);
	if (t->want.sums) /* while the bytes are in the CPU cache */
		t->sum = crc32c(t->sum, bytes, n);
	t->got += n;
	return true;
}

void transfer_begin(struct transfer *t, const struct curlso *so, const struct transfer_want *w)
{
	char range[64];

	t->want = *w;
	t->got = 0;
	t->sum = 0;
	t->too_long = false;
	t->text_n = 0;
	snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)w->begin,
		 (unsigned long long)(w->begin + w->n - 1));
	t->curl = (struct curl_request){
		.url = w->url, .headers = w->headers, .range = w->peer ? NULL : range, .agent = "dptrain",
		.extra_header = PEER_SERVER_BLOCK_HEADER, .ca = w->ca,
		.connect_s = w->left_s < CONNECT_S ? w->left_s : CONNECT_S, .stall_s = w->stall_s,
		.follows = w->follows, .direct = w->peer, .bulk = true, .receive = receive_transfer_body, .user = t,
	};
	curl_request_begin(so, t->easy, &t->curl);
}

static enum transfer_end judge_response_status(const struct transfer *t, char why[200])
{
	const long status = t->curl.answer.status;
	char code[OBJECT_CODE_BYTES];

	object_code(t->text, t->text_n, code);
	snprintf(why, 200, "the server returned status %ld%s%.100s", status, code[0] ? ", " : "", code);
	if (status == 429 || status == 503)
		return TRANSFER_BUSY;
	if (curl_may_pass(status))
		return TRANSFER_AGAIN;
	if (status == 412)
		snprintf(why, 200, "has changed since it was first read");
	else if (status == 416)
		snprintf(why, 200, "has been truncated (status 416)");
	return TRANSFER_REFUSED;
}

/* Checks range, length and ETag of a successful response. */
static enum transfer_end judge_response_body(struct transfer *t, char why[200])
{
	const struct transfer_want *w = &t->want;
	const struct curl_answer *a = &t->curl.answer;
	bool whole = a->status == 200 && !w->begin && a->total == w->n && t->got == w->n;

	if (a->status == 200 && !whole) {
		snprintf(why, 200, "the server ignored the requested range (status 200)");
		return TRANSFER_WRONG;
	}
	if (a->status != 200 && a->has_range && !a->total && !w->total) {
		snprintf(why, 200, "the server does not state the length (Content-Range: bytes …/*)");
		return TRANSFER_REFUSED;
	}
	if (a->status != 200 &&
	    (!a->has_range || a->begin != w->begin || (w->total && a->total && a->total != w->total))) {
		snprintf(why, 200, "the server returned another range than requested");
		return TRANSFER_WRONG;
	}
	if (t->got != w->n) {
		snprintf(why, 200, "the response ended after %llu of %llu bytes", (unsigned long long)t->got,
			 (unsigned long long)w->n);
		return TRANSFER_AGAIN;
	}
	if (w->etag[0] && a->etag[0] && strcmp(w->etag, a->etag) != 0) {
		snprintf(why, 200, "has changed since it was first read");
		return TRANSFER_REFUSED;
	}
	return TRANSFER_DONE;
}

bool transfer_answered(struct transfer *t, const struct curlso *so, int code)
{
	curl_request_end(so, t->easy, code, &t->curl);
	return code == CURLSO_OK && !t->too_long;
}

enum transfer_end transfer_end(struct transfer *t, const struct curlso *so, int code, char why[200])
{
	const bool answered = transfer_answered(t, so, code);

	if (t->too_long || (answered && t->curl.answer.status >= 200 && t->curl.answer.status < 300)) {
		t->got += t->too_long; /* makes the length wrong */
		return judge_response_body(t, why);
	}
	if (answered)
		return judge_response_status(t, why);
	snprintf(why, 200, "%.190s", t->curl.error);
	return curlso_for_good(code) ? TRANSFER_REFUSED : TRANSFER_AGAIN;
}

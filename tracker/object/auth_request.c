/* SPDX-License-Identifier: Apache-2.0 */
/* auth_request.c: short requests to metadata and token servers. */
#include "tracker/object/settings.h"

#include <stdio.h>

static bool append_answer(void *user, const char *bytes, size_t n)
{
	buf_add(user, bytes, n);
	return !buf_failed(user);
}

void auth_request_send(const struct curlso *so, const char *header, struct curl_request *r, struct buf *text)
{
	void *e = so->easy_init();
	bool ready = e && (!header || curl_add_header(so, &r->headers, "%s", header));

	buf_reset(text);
	r->agent = "dptrack";
	r->connect_s = r->direct ? 1 : 10;
	r->stall_s = r->direct ? 3 : 20;
	r->receive = append_answer;
	r->user = text;
	if (ready && curl_request_perform(so, e, r) != CURLSO_OK)
		r->answer.status = 0;
	if (e)
		so->easy_cleanup(e);
	so->slist_free_all(r->headers);
	r->headers = NULL;
	buf_addc(text, '\0');
	if (!ready || buf_failed(text)) {
		r->answer.status = 0;
		snprintf(r->error, sizeof(r->error), "%s", ready ? "the answer is too long" : "out of memory");
	}
}

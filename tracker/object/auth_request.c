/* SPDX-License-Identifier: Apache-2.0 */
/* auth_request.c: one request with libcurl. */
#include "tracker/object/settings.h"

#include <stdio.h>

#define NEAR_MS 1000L
#define FAR_MS 10000L
#define STALL_S 3L
#define FAR_STALL_S 20L

static size_t append_answer(char *bytes, size_t size, size_t n, void *user)
{
	buf_add(user, bytes, size * n);
	return buf_failed(user) ? 0 : size * n;
}

/* Reads the date from its header line: "Sun, 06 Nov 1994 08:49:37 GMT". */
static size_t read_date_header(char *line, size_t size, size_t n, void *user)
{
	struct auth_answer *a = user;
	struct tm at = { .tm_mday = 1 };
	char value[CURLSO_HEADER_BYTES];

	if (curlso_header(line, size * n, "Date", value) && strptime(value, "%a, %d %b %Y %H:%M:%S", &at))
		a->date = timegm(&at);
	return size * n;
}

static void set_auth_options(const struct curlso *so, void *e, const struct auth_request *r, struct auth_answer *ret)
{
	so->easy_setopt(e, CURLSO_URL, r->url);
	so->easy_setopt(e, CURLSO_PROTOCOLS, (long)CURLSO_HTTP_AND_HTTPS);
	if (!r->far)
		so->easy_setopt(e, CURLSO_PROXY, "");
	so->easy_setopt(e, CURLSO_NOSIGNAL, 1L);
	so->easy_setopt(e, CURLSO_USERAGENT, "dptrack");
	so->easy_setopt(e, CURLSO_CONNECTTIMEOUT_MS, r->far ? FAR_MS : NEAR_MS);
	so->easy_setopt(e, CURLSO_LOW_SPEED_LIMIT, 1L);
	so->easy_setopt(e, CURLSO_LOW_SPEED_TIME, r->far ? FAR_STALL_S : STALL_S);
	so->easy_setopt(e, CURLSO_ERRORBUFFER, ret->error);
	so->easy_setopt(e, CURLSO_WRITEFUNCTION, append_answer);
	so->easy_setopt(e, CURLSO_HEADERFUNCTION, read_date_header);
	so->easy_setopt(e, CURLSO_HEADERDATA, ret);
	if (r->put)
		so->easy_setopt(e, CURLSO_CUSTOMREQUEST, "PUT");
	if (r->form)
		so->easy_setopt(e, CURLSO_POSTFIELDS, r->form);
}

void auth_request_send(const struct curlso *so, const struct auth_request *r, struct auth_answer *ret, struct buf *text)
{
	void *e = so->easy_init();
	struct curl_slist *list = r->header ? so->slist_append(NULL, r->header) : NULL;
	int code;

	*ret = (struct auth_answer){ .status = 0 };
	buf_reset(text);
	if (e) {
		set_auth_options(so, e, r, ret);
		so->easy_setopt(e, CURLSO_HTTPHEADER, list);
		so->easy_setopt(e, CURLSO_WRITEDATA, text);
		code = so->easy_perform(e);
		if (code == CURLSO_OK)
			so->easy_getinfo(e, CURLSO_RESPONSE_CODE, &ret->status);
		else if (!ret->error[0])
			snprintf(ret->error, sizeof(ret->error), "%.200s", so->easy_strerror(code));
		so->easy_cleanup(e);
	}
	so->slist_free_all(list);
	buf_addc(text, '\0');
	if (!e || buf_failed(text)) {
		ret->status = 0;
		snprintf(ret->error, sizeof(ret->error), "%s", e ? "the answer is too long" : "out of memory");
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.c: requests through libcurl's easy interface. */
#include "tracker/base/text.h"
#include "tracker/sink/http_client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "config.h"
#include "tracker/base/clock.h"
#include "tracker/curl/curl_request.h"

#define REPLY_BYTES_MAX (64u << 20)
#define URL_BYTES_MAX 4096u
#define CONNECT_S 5.0
#define STALLED_S 30.0
#define GZIP_WINDOW_BITS (15 + 16)

struct http {
	struct curlso so;
	void *easy;
	char *url;	     /* has no trailing slash */
	char *shown;	     /* the same for messages, without user and password */
	char *authorization; /* whole header line, or NULL */
	char *ca;	     /* file of certificates to trust, or NULL */
	bool trusting;	     /* accept any certificate */
	_Atomic(int) canceled;
	/* of the current request */
	const struct http_request *req;
	struct http_reply *reply;
	struct curl_request curl;
};

static char *format_text(const char *fmt, const char *text, int n)
{
	struct buf b;

	buf_init(&b, URL_BYTES_MAX);
	buf_addf(&b, fmt, n, text);
	return buf_take(&b, NULL);
}

static char *format_shown_url(const char *url, size_t n)
{
	size_t scheme = strstr(url, "://") + 3 - url, host = scheme;

	for (size_t i = scheme; i < n && url[i] != '/'; i++)
		if (url[i] == '@')
			host = i + 1;
	return format_text(host > scheme ? "(with a password) %.*s" : "%.*s", url + (host > scheme ? host : 0),
			   (int)(n - (host > scheme ? host : 0)));
}

int http_open(struct http **ret, const char *url, const char *token, struct err *err)
{
	const char *ca = getenv("DPTRACK_CA");
	struct http *h;
	size_t n = strlen(url);
	int rc;

	if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) || n >= URL_BYTES_MAX / 2 ||
	    strchr("/?#:", url[url[4] == 's' ? 8 : 7])) /* without a host */
		return err_set(err, ERR_USAGE, "\"%.200s\" is not an http:// or https:// URL", url);
	if (token && strpbrk(token, "\r\n"))
		return err_set(err, ERR_USAGE, "the token has a line break");
	while (n && url[n - 1] == '/')
		n--;
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_nomem(err, NULL);
	rc = curlso_load(&h->so, err);
	if (rc)
		goto out;
	h->easy = h->so.easy_init();
	h->url = format_text("%.*s", url, (int)n);
	h->shown = format_shown_url(url, n);
	h->ca = ca && *ca ? strdup(ca) : NULL;
	if (token && *token)
		h->authorization = format_text("Authorization: Bearer %.*s", token, (int)strlen(token));
	rc = ERR_NOMEM;
	if (!h->easy || !h->url || !h->shown || (token && *token && !h->authorization)) {
		err_set(err, rc, "out of memory");
		goto out;
	}
	*ret = h;
	h = NULL;
	rc = 0;
out:
	http_close(h);
	return rc;
}

bool http_token_file(char *path, size_t n)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int len;

	if (xdg && *xdg == '/')
		len = snprintf(path, n, "%s/dptrack/tokens", xdg);
	else
		len = snprintf(path, n, "%s/.config/dptrack/tokens", home ? home : "");
	return len > 0 && (size_t)len < n && *path == '/' && (home || xdg);
}

const char *http_token(const char *url, char ret[HTTP_TOKEN_BYTES])
{
	const char *given = getenv("DPTRACK_TOKEN");
	char path[4096], *line = NULL;
	size_t n = strlen(url), room = 0;
	FILE *f;

	*ret = '\0';
	if (given && *given)
		return given;
	if (!http_token_file(path, sizeof(path)) || !(f = fopen(path, "re")))
		return ret;
	while (n && url[n - 1] == '/')
		n--;
	while (getline(&line, &room, f) > 0) {
		const size_t token = strcspn(line, " ");

		if (line[token] && token < HTTP_TOKEN_BYTES && !strncmp(line + token + 1, url, n) &&
		    line[token + 1 + n] == '\n')
			snprintf(ret, HTTP_TOKEN_BYTES, "%.*s", (int)token, line);
	}
	free(line);
	fclose(f);
	return ret;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	if (h->easy)
		h->so.easy_cleanup(h->easy);
	free(h->url);
	free(h->shown);
	free(h->authorization);
	free(h->ca);
	free(h);
}

void http_trust(struct http *h)
{
	h->trusting = true;
}

void http_hide_path(struct http *h)
{
	char *host = strstr(h->shown, "://") + 3;

	host[strcspn(host, "/?#")] = '\0';
}

const char *http_url(const struct http *h)
{
	return h->shown;
}

void http_cancel(struct http *h)
{
	atomic_store(&h->canceled, 1);
}

static bool receive_reply_body(void *user, const char *bytes, size_t n)
{
	struct http *h = user;
	const long status = h->curl.answer.status;

	if (h->req->piece && status >= 200 && status < 300)
		return !h->req->piece(h->req->user, bytes, n);
	buf_add(&h->reply->body, bytes, n);
	return !buf_failed(&h->reply->body);
}

static bool is_over(const struct http *h, const struct http_request *req)
{
	return atomic_load(&h->canceled) || (req->deadline_s > 0 && clock_mono_s() >= req->deadline_s);
}

static bool check_deadline(void *user)
{
	const struct http *h = user;

	return is_over(h, h->req);
}

static int compress_body(struct buf *to, const void *body, size_t n, struct err *err)
{
	z_stream z = { 0 };
	size_t bound;
	char *at;
	int rc;

	if (n > UINT32_MAX / 2 || deflateInit2(&z, 1, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, ERR_NOMEM, "cannot compress %zu bytes", n);
	bound = deflateBound(&z, n);
	buf_init(to, bound);
	at = buf_reserve(to, bound);
	z.next_in = (Bytef *)(uintptr_t)body;
	z.avail_in = (uInt)n;
	z.next_out = (Bytef *)at;
	z.avail_out = (uInt)bound;
	rc = at ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	to->len = z.total_out;
	deflateEnd(&z);
	return rc == Z_STREAM_END ? 0 : err_set(err, ERR_NOMEM, "cannot compress %zu bytes", n);
}

static bool make_headers(struct http *h, const struct http_request *req, struct curl_slist **ret)
{
	bool ok = curl_add_header(&h->so, ret, "Expect:"); /* saves a round trip before the body */

	if (ok && h->authorization)
		ok = curl_add_header(&h->so, ret, "%s", h->authorization);
	if (ok && req->body)
		ok = curl_add_header(&h->so, ret, "Content-Type: %s",
				     req->content_type ? req->content_type : "application/octet-stream");
	if (ok && req->body && req->gzip)
		ok = curl_add_header(&h->so, ret, "Content-Encoding: gzip");
	for (const char *const *more = req->headers; ok && more && *more; more++)
		ok = curl_add_header(&h->so, ret, "%s", *more);
	return ok;
}

/* Performs the request and fills h->reply. Errors: see http_send. */
static int perform_request(struct http *h, const char *url, struct curl_slist *headers, const struct buf *body,
			   struct err *err)
{
	int64_t sent = 0;
	int code;

	h->curl = (struct curl_request){
		.url = url, .method = h->req->method, .headers = headers, .body = h->req->body ? body->data : NULL,
		.body_bytes = body->len, .agent = "libdptrack/" PACKAGE_VERSION, .ca = h->ca, .connect_s = CONNECT_S,
		.stall_s = STALLED_S, .trusting = h->trusting, .receive = receive_reply_body,
		.stopped = check_deadline, .user = h,
	};
	code = curl_request_perform(&h->so, h->easy, &h->curl);
	if (code == CURLSO_ABORTED)
		return err_set(err, ERR_CANCELED, "%s: timed out", h->shown);
	if (code == CURLSO_URL_MALFORMAT)
		return err_set(err, ERR_USAGE, "%s: not a valid URL: check the name and the port", h->shown);
	if (code == CURLSO_TIMED_OUT && h->so.easy_getinfo(h->easy, CURLSO_PRETRANSFER_TIME, &sent) == CURLSO_OK &&
	    sent > 0)
		return err_set(err, ERR_PEER, "%s: no answer for %.0f s: the server is stopped or overloaded",
			       h->shown, STALLED_S);
	if (code)
		return err_set(err, ERR_PEER, "%s: %s", h->shown, h->curl.error);
	h->reply->status = h->curl.answer.status;
	h->reply->retry_after_s = h->curl.answer.retry_after_s;
	h->reply->date_s = h->curl.answer.date;
	return 0;
}

int http_send(struct http *h, const struct http_request *req, struct http_reply *ret, struct err *err)
{
	struct http_reply reply = { 0 };
	struct curl_slist *headers = NULL;
	struct buf packed = { 0 }, body = { .data = (char *)(uintptr_t)req->body, .len = req->body_bytes };
	char url[URL_BYTES_MAX];
	int rc = 0;

	if (is_over(h, req))
		return err_set(err, ERR_CANCELED, "%s: timed out", h->shown);
	if ((size_t)snprintf(url, sizeof(url), "%s%s", h->url, req->path) >= sizeof(url))
		return err_set(err, ERR_USAGE, "%s: the URL is too long", h->shown);
	buf_init(&reply.body, REPLY_BYTES_MAX);
	h->req = req;
	h->reply = &reply;
	if (req->body && req->gzip)
		rc = compress_body(&packed, req->body, req->body_bytes, err);
	if (!rc && !make_headers(h, req, &headers))
		rc = err_nomem(err, NULL);
	if (!rc)
		rc = perform_request(h, url, headers, packed.data ? &packed : &body, err);
	h->so.slist_free_all(headers);
	buf_done(&packed);
	h->req = NULL;
	h->reply = NULL;
	if (rc)
		buf_done(&reply.body);
	else
		*ret = reply;
	return rc;
}

void http_reply_done(struct http_reply *reply)
{
	buf_done(&reply->body);
}

void http_reply_reason(const struct http_reply *reply, char *to, size_t cap)
{
	static const char name[] = "\"message\":";
	const char *at = reply->body.data ? strstr(reply->body.data, name) : NULL;
	size_t n = 0;

	if (at) {
		at += sizeof(name) - 1;
		at += strspn(at, " ");
	}
	if (!at || *at != '"') {
		snprintf(to, cap, "status %ld", reply->status);
		return;
	}
	for (at++; *at && *at != '"' && n + 1 < cap; at++) {
		if (*at == '\\' && at[1])
			at++;
		to[n++] = (unsigned char)*at < 0x20 ? ' ' : *at;
	}
	to[n] = '\0';
}

void http_add_path(struct buf *path, const char *text)
{
	text_add_escaped(path, text, "-._~/");
}

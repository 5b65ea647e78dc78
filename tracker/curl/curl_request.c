/* SPDX-License-Identifier: Apache-2.0 */
/* curl_request.c: options of a request, and the headers of its answer (RFC 9110, sections 10, 13 and 14). */
#include "tracker/curl/curl_request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define REDIRECTS 5L
#define RECEIVE_BYTES (512L << 10)
#define SEND_BYTES (256L << 10)
#define BACKOFF_S 0.1
#define BACKOFF_MOST_S 10.0
#define RETRY_AFTER_MOST_S 60.0
#define VALUE_BYTES 256

/* Extracts the value if the header line has this name; long values are truncated. */
static bool match_header(const char *line, size_t n, const char *name, char ret[VALUE_BYTES])
{
	size_t length = strlen(name);

	if (n <= length || strncasecmp(line, name, length) || line[length] != ':')
		return false;
	for (length++; length < n && (line[length] == ' ' || line[length] == '\t');)
		length++;
	while (n > length && strchr("\r\n \t", line[n - 1]))
		n--;
	snprintf(ret, VALUE_BYTES, "%.*s", (int)(n - length), line + length);
	return true;
}

/* Parses "bytes 0-7/1234", or "bytes 0-7/" and a star: total 0. */
static void parse_content_range(struct curl_answer *a, const char *value)
{
	unsigned long long begin, end, total = 0;
	char rest[2] = "";
	const int n = sscanf(value, "bytes %llu-%llu/%1[*]", &begin, &end, rest);

	a->has_range = n == 3 || sscanf(value, "bytes %llu-%llu/%llu", &begin, &end, &total) == 3;
	a->begin = a->has_range ? begin : 0;
	a->total = a->has_range ? total : 0;
}

/* Reads the date from "Sun, 06 Nov 1994 08:49:37 GMT"; 0: another format. */
static time_t parse_date(const char *value)
{
	struct tm at = { .tm_mday = 1 };

	return strptime(value, "%a, %d %b %Y %H:%M:%S", &at) ? timegm(&at) : 0;
}

/* Parses the headers that matter. A status line begins the next answer, after a redirect. */
static size_t read_answer_header(char *line, size_t size, size_t n, void *user)
{
	const struct curl_request *r = user;
	struct curl_answer *a = &((struct curl_request *)user)->answer;
	char value[VALUE_BYTES];

	n *= size;
	if (n > 9 && !strncmp(line, "HTTP/", 5)) {
		const char *space = memchr(line, ' ', n);

		*a = (struct curl_answer){ .status = space ? strtol(space, NULL, 10) : 0 };
	} else if (match_header(line, n, "ETag", value)) {
		snprintf(a->etag, sizeof(a->etag), "%.*s", CURL_ETAG_BYTES - 1, value);
	} else if (match_header(line, n, "Last-Modified", value)) {
		snprintf(a->modified, sizeof(a->modified), "%.63s", value);
	} else if (match_header(line, n, "Content-Range", value)) {
		parse_content_range(a, value);
	} else if (match_header(line, n, "Content-Length", value) && a->status == 200) {
		a->total = strtoull(value, NULL, 10);
	} else if (match_header(line, n, "Date", value)) {
		a->date = parse_date(value);
	} else if (match_header(line, n, "x-amz-bucket-region", value)) {
		snprintf(a->region, sizeof(a->region), "%.63s", value);
	} else if (match_header(line, n, "x-goog-generation", value)) {
		snprintf(a->generation, sizeof(a->generation), "%.23s", value);
	} else if (r->extra_header && match_header(line, n, r->extra_header, value)) {
		snprintf(a->extra, sizeof(a->extra), "%.95s", value);
	}
	return n;
}

static size_t pass_answer_body(char *bytes, size_t size, size_t n, void *user)
{
	const struct curl_request *r = user;

	return r->receive(r->user, bytes, size * n) ? size * n : 0;
}

static int check_request_stop(void *user, int64_t a, int64_t b, int64_t c, int64_t d)
{
	const struct curl_request *r = user;

	(void)a, (void)b, (void)c, (void)d;
	return r->stopped(r->user);
}

bool curl_add_header(const struct curlso *so, struct curl_slist **list, const char *fmt, ...)
{
	struct curl_slist *grown;
	char *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&line, fmt, ap) < 0)
		line = NULL;
	va_end(ap);
	grown = line ? so->slist_append(*list, line) : NULL;
	free(line);
	if (grown)
		*list = grown;
	return grown != NULL;
}

/* Returns SSL_CERT_FILE, else the first of the files that distributions have; NULL: libcurl's own choice. */
static const char *find_authorities(void)
{
	static const char *const files[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch */
		"/etc/pki/tls/certs/ca-bundle.crt",   /* Red Hat */
		"/etc/ssl/ca-bundle.pem",	      /* SUSE */
		"/etc/ssl/cert.pem",		      /* Alpine without its package ca-certificates */
	};
	const char *named = getenv("SSL_CERT_FILE");

	if (named && *named)
		return named;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!access(files[i], R_OK))
			return files[i];
	return NULL;
}

/* Sets TLS, proxy, redirects, timeouts and buffers. */
static void set_limits(const struct curlso *so, void *e, const struct curl_request *r)
{
	const char *ca = r->ca ? r->ca : find_authorities();

	so->easy_setopt(e, CURLSO_PROTOCOLS, (long)CURLSO_HTTP_AND_HTTPS);
	so->easy_setopt(e, CURLSO_REDIR_PROTOCOLS, (long)CURLSO_HTTP_AND_HTTPS);
	so->easy_setopt(e, CURLSO_FOLLOWLOCATION, (long)r->follows);
	so->easy_setopt(e, CURLSO_MAXREDIRS, REDIRECTS);
	so->easy_setopt(e, CURLSO_NETRC, r->follows ? (long)CURLSO_NETRC_OPTIONAL : 0L);
	so->easy_setopt(e, CURLSO_PATH_AS_IS, (long)!r->follows);
	so->easy_setopt(e, CURLSO_NOSIGNAL, 1L);
	so->easy_setopt(e, CURLSO_CONNECTTIMEOUT_MS, r->connect_s < 1 ? 1000L : (long)(r->connect_s * 1000));
	so->easy_setopt(e, CURLSO_LOW_SPEED_LIMIT, 1L);
	so->easy_setopt(e, CURLSO_LOW_SPEED_TIME, r->stall_s < 1 ? 1L : (long)r->stall_s);
	so->easy_setopt(e, CURLSO_SSL_VERIFYPEER, r->trusting ? 0L : 1L);
	so->easy_setopt(e, CURLSO_SSL_VERIFYHOST, r->trusting ? 0L : 2L);
	if (ca)
		so->easy_setopt(e, CURLSO_CAINFO, ca);
	if (r->direct)
		so->easy_setopt(e, CURLSO_PROXY, "");
	if (r->bulk) {
		so->easy_setopt(e, CURLSO_BUFFERSIZE, RECEIVE_BYTES);
		so->easy_setopt(e, CURLSO_UPLOAD_BUFFERSIZE, SEND_BYTES);
	}
}

void curl_request_begin(const struct curlso *so, void *easy, struct curl_request *r)
{
	r->answer = (struct curl_answer){ .status = 0 };
	r->error[0] = '\0';
	so->easy_reset(easy);
	set_limits(so, easy, r);
	so->easy_setopt(easy, CURLSO_URL, r->url);
	so->easy_setopt(easy, CURLSO_USERAGENT, r->agent);
	so->easy_setopt(easy, CURLSO_HTTPHEADER, r->headers);
	if (r->method && !strcmp(r->method, "HEAD"))
		so->easy_setopt(easy, CURLSO_NOBODY, 1L);
	else if (r->method && strcmp(r->method, "GET"))
		so->easy_setopt(easy, CURLSO_CUSTOMREQUEST, r->method);
	if (r->body) {
		so->easy_setopt(easy, CURLSO_POSTFIELDSIZE_LARGE, (int64_t)r->body_bytes);
		so->easy_setopt(easy, CURLSO_POSTFIELDS, r->body);
	}
	if (r->range)
		so->easy_setopt(easy, CURLSO_RANGE, r->range);
	so->easy_setopt(easy, CURLSO_WRITEFUNCTION, pass_answer_body);
	so->easy_setopt(easy, CURLSO_WRITEDATA, r);
	so->easy_setopt(easy, CURLSO_HEADERFUNCTION, read_answer_header);
	so->easy_setopt(easy, CURLSO_HEADERDATA, r);
	if (r->stopped) {
		so->easy_setopt(easy, CURLSO_NOPROGRESS, 0L);
		so->easy_setopt(easy, CURLSO_XFERINFOFUNCTION, check_request_stop);
		so->easy_setopt(easy, CURLSO_XFERINFODATA, r);
	}
	so->easy_setopt(easy, CURLSO_ERRORBUFFER, r->error);
}

void curl_request_end(const struct curlso *so, void *easy, int code, struct curl_request *r)
{
	int64_t after = 0;

	if (code == CURLSO_OK)
		r->error[0] = '\0';
	else if (!r->error[0])
		snprintf(r->error, sizeof(r->error), "%.200s", so->easy_strerror(code));
	if (!so->easy_getinfo(easy, CURLSO_RETRY_AFTER, &after) && after > 0) /* libcurl before 7.66 has no answer */
		r->answer.retry_after_s = (double)after;
}

int curl_request_perform(const struct curlso *so, void *easy, struct curl_request *r)
{
	int code;

	curl_request_begin(so, easy, r);
	code = so->easy_perform(easy);
	curl_request_end(so, easy, code, r);
	return code;
}

bool curl_may_pass(long status)
{
	return status == 408 || status == 429 || status >= 500;
}

double curl_backoff_s(int failures, double retry_after_s, uint64_t draw)
{
	double wait = BACKOFF_S;

	for (; failures > 1 && wait < BACKOFF_MOST_S; failures--)
		wait *= 2;
	wait = wait < BACKOFF_MOST_S ? wait : BACKOFF_MOST_S;
	wait *= 0.5 + 0.5 * (double)(draw * 0x9e3779b97f4a7c15u >> 40) / (double)(1 << 24);
	retry_after_s = retry_after_s < RETRY_AFTER_MOST_S ? retry_after_s : RETRY_AFTER_MOST_S;
	return retry_after_s > wait ? retry_after_s : wait;
}

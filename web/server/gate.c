/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c: refuses malformed and ambiguous requests. The rules are those of RFC 9110 and RFC 9112. */
#include "web/server/gate.h"

#include <string.h>
#include <strings.h>

struct gate_refusal {
	enum call_error code;
	const char *why;
};

bool gate_is_token(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		unsigned char ch = (unsigned char)s[i];

		if (ch <= 0x20 || ch >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", ch))
			return false;
	}
	return n > 0;
}

bool gate_is_text(char ch)
{
	return (unsigned char)ch >= 0x20 ? ch != 0x7f : ch == '\t';
}

static bool is_header_named(const struct gate_header *h, const char *name)
{
	return strlen(name) == h->name_len && !strncasecmp(h->name, name, h->name_len);
}

const struct gate_header *gate_find(const struct gate_request *req, const char *name)
{
	size_t i;

	for (i = 0; i < req->header_count; i++)
		if (is_header_named(&req->headers[i], name))
			return &req->headers[i];
	return NULL;
}

static size_t count_headers_named(const struct gate_request *req, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < req->header_count; i++)
		n += is_header_named(&req->headers[i], name);
	return n;
}

static bool refuse_at_gate(struct gate_refusal *r, enum call_error code, const char *why)
{
	*r = (struct gate_refusal){ code, why };
	return false;
}

/* Returns true if exactly n NUL bytes separate two strings. The library accepts a bare CR, LF or NUL as the end of a
 * line or a value; other programs between the client and the server may not. In its buffer each CRLF became two NULs,
 * so a gap of another size shows such an end. */
static bool is_gap_of(const char *from, const char *to, size_t n)
{
	size_t i;

	if (from > to || (size_t)(to - from) != n)
		return false;
	for (i = 0; i < n; i++)
		if (from[i])
			return false;
	return true;
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

static bool check_line_ends(const struct gate_request *req, struct gate_refusal *r)
{
	const char *end = req->version + strlen(req->version);
	static const char why[] = "a line does not end in CR LF, or contains a NUL";
	size_t i;

	if (!req->target_at)
		return true;
	if (!is_gap_of(req->method + strlen(req->method), req->target_at, 1) ||
	    !is_gap_of(req->target_at + strlen(req->target), req->version, 1))
		return refuse_at_gate(r, CALL_bad_request, "the request line is not METHOD SP ADDRESS SP VERSION");
	for (i = 0; i < req->header_count; i++) {
		const struct gate_header *h = &req->headers[i];

		if (!is_gap_of(end, h->name, 2))
			return refuse_at_gate(r, CALL_bad_request, why);
		end = skip_blanks(h->value + h->value_len);
	}
	return end[0] || end[1] || end[2] || end[3] ? refuse_at_gate(r, CALL_bad_request, why) : true;
}

/* Checks version, method and address, and sets the verb and the method. */
static bool check_request_line(struct gate_pass *p, const struct gate_request *req, struct gate_refusal *r)
{
	static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
	const char *s;
	size_t i;

	if (strcmp(req->version, "HTTP/1.1") && strcmp(req->version, "HTTP/1.0"))
		return refuse_at_gate(r, CALL_http_version, "unsupported HTTP version: expected HTTP/1.1 or HTTP/1.0");
	if (strlen(req->target) > GATE_TARGET_MAX)
		return refuse_at_gate(r, CALL_uri_too_long,
				      "the URL is longer than 48 KiB; use the POST form of the query");
	for (s = req->target; *s; s++)
		if ((unsigned char)*s <= 0x20 || (unsigned char)*s >= 0x7f || *s == '#' || *s == '\\')
			return refuse_at_gate(r, CALL_bad_request,
					      "the URL contains a byte that must be percent-encoded");
	p->verb = VERB_METHOD;
	p->method = METHOD_GET;
	if (!strcmp(req->method, "HEAD"))
		p->verb = VERB_HEAD;
	else if (!strcmp(req->method, "OPTIONS"))
		p->verb = VERB_OPTIONS;
	else {
		for (i = 0; i < sizeof(methods) / sizeof(methods[0]) && strcmp(methods[i], req->method); i++)
			;
		if (i == sizeof(methods) / sizeof(methods[0]))
			return refuse_at_gate(
				r, CALL_method_not_allowed,
				"unknown method: expected GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
		p->method = (enum call_method)i;
	}
	if (req->target[0] != '/' && !(p->verb == VERB_OPTIONS && !strcmp(req->target, "*")))
		return refuse_at_gate(r, CALL_bad_request, "the path must start with /");
	return true;
}

/* Checks the syntax of all header fields, and that fields of one value occur once. */
static bool check_header_fields(const struct gate_request *req, struct gate_refusal *r)
{
	static const char *const single[] = { "Host", "Content-Length", "Transfer-Encoding", "Content-Type",
					      "Content-Encoding", "Authorization", "Expect", "Origin", "Range",
					      "If-None-Match", "Idempotency-Key" };
	const struct gate_header *idempotency = gate_find(req, "Idempotency-Key");
	size_t i, k, bytes = 0;

	if (req->header_count > GATE_HEADERS_MAX)
		return refuse_at_gate(r, CALL_header_too_large, "more than 100 header fields");
	for (i = 0; i < req->header_count; i++) {
		const struct gate_header *h = &req->headers[i];

		if (!gate_is_token(h->name, h->name_len))
			return refuse_at_gate(r, CALL_bad_request, "a header field's name is not a token");
		bytes += h->name_len + h->value_len;
		if (bytes > GATE_FIELDS_MAX)
			return refuse_at_gate(r, CALL_header_too_large, "header fields of more than 32 KiB");
		for (k = 0; k < h->value_len; k++)
			if (!gate_is_text(h->value[k]))
				return refuse_at_gate(r, CALL_bad_request,
						      "a header field contains a control character");
	}
	for (i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		if (count_headers_named(req, single[i]) > 1)
			return refuse_at_gate(r, CALL_bad_request, "a header field that may occur once occurs twice");
	if (idempotency && idempotency->value_len > 255)
		return refuse_at_gate(r, CALL_bad_request, "Idempotency-Key has more than 255 characters");
	return true;
}

/* Checks how the body is delimited: Content-Length or chunked, never both. */
static bool check_framing(struct gate_pass *p, const struct gate_request *req, struct gate_refusal *r)
{
	const struct gate_header *cl = gate_find(req, "Content-Length");
	const struct gate_header *te = gate_find(req, "Transfer-Encoding");
	size_t i;

	p->content_length = -1;
	p->chunked = te != NULL;
	if (te && cl)
		return refuse_at_gate(r, CALL_bad_request, "both Content-Length and Transfer-Encoding");
	if (te && !strcmp(req->version, "HTTP/1.0"))
		return refuse_at_gate(r, CALL_bad_request, "Transfer-Encoding in HTTP/1.0");
	if (te && (te->value_len != 7 || strncasecmp(te->value, "chunked", 7)))
		return refuse_at_gate(r, CALL_not_implemented, "the only Transfer-Encoding is chunked");
	if (!cl)
		return true;
	if (!cl->value_len)
		return refuse_at_gate(r, CALL_bad_request, "Content-Length is not a number");
	p->content_length = 0;
	for (i = 0; i < cl->value_len; i++) {
		if (cl->value[i] < '0' || cl->value[i] > '9')
			return refuse_at_gate(r, CALL_bad_request, "Content-Length is not a number");
		if (i >= 18)
			return refuse_at_gate(r, CALL_too_large, "Content-Length is larger than any limit");
		p->content_length = p->content_length * 10 + (cl->value[i] - '0');
	}
	return true;
}

static bool check_host_and_encoding(struct gate_pass *p, const struct gate_request *req, struct gate_refusal *r)
{
	const struct gate_header *host = gate_find(req, "Host");
	const struct gate_header *ce = gate_find(req, "Content-Encoding");
	const struct gate_header *expect = gate_find(req, "Expect");

	if (!host && strcmp(req->version, "HTTP/1.0"))
		return refuse_at_gate(r, CALL_bad_request, "no Host");
	p->host = host ? host->value : NULL;
	if (expect && strcasecmp(expect->value, "100-continue"))
		return refuse_at_gate(r, CALL_expectation, "the only expectation is 100-continue");
	p->gzip_body = false;
	if (ce && (!strcasecmp(ce->value, "gzip") || !strcasecmp(ce->value, "x-gzip")))
		p->gzip_body = true;
	else if (ce && ce->value_len && strcasecmp(ce->value, "identity"))
		return refuse_at_gate(r, CALL_media_type, "unsupported Content-Encoding: expected gzip or identity");
	return true;
}

bool gate_check(struct gate_pass *ret, const struct gate_request *req, enum call_error *code, const char **why)
{
	struct gate_refusal r = { CALL_bad_request, "" };

	/* Field syntax comes first: if a field name is malformed, nothing else can be trusted. */
	if (check_header_fields(req, &r) && check_line_ends(req, &r) && check_framing(ret, req, &r) &&
	    check_request_line(ret, req, &r) && check_host_and_encoding(ret, req, &r))
		return true;
	*code = r.code;
	*why = r.why;
	return false;
}

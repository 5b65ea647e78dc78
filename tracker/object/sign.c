/* SPDX-License-Identifier: Apache-2.0 */
/* sign.c: encodes keys and queries, and builds the canonical request, the string to sign and the signing key. */
#include "tracker/object/sign.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/sha256.h"
#include "tracker/base/text.h"

#define TEXT_MAX ((size_t)1 << 20)
#define DAY 8 /* characters of a date */
#define SERVICE "s3"
#define METHOD "AWS4-HMAC-SHA256"

void sign_date(time_t when, char ret[SIGN_DATE_BYTES])
{
	struct tm at = { .tm_mday = 1 };

	gmtime_r(&when, &at);
	strftime(ret, SIGN_DATE_BYTES, "%Y%m%dT%H%M%SZ", &at);
}

static void add_header_names(struct buf *to, const struct sign_request *r)
{
	for (int i = 0; i < r->n_headers; i++)
		buf_addf(to, "%s%s", i ? ";" : "", r->header[i].name);
}

/* Hashes the canonical form of the request with SHA-256. */
static bool hash_request(const struct sign_request *r, char ret[65])
{
	struct buf b;
	bool whole;

	buf_init(&b, TEXT_MAX);
	buf_addf(&b, "%s\n%s\n%s\n", r->method, r->path, r->query);
	for (int i = 0; i < r->n_headers; i++)
		buf_addf(&b, "%s:%s\n", r->header[i].name, r->header[i].value);
	buf_addc(&b, '\n');
	add_header_names(&b, r);
	buf_addf(&b, "\n%s", r->payload);
	whole = !buf_failed(&b);
	sha256_hex(whole ? b.data : "", whole ? b.len : 0, ret);
	buf_done(&b);
	return whole;
}

/* Derives the key for one day, region and service. */
static void derive_key(const struct sign_key *k, const char *date, unsigned char ret[32])
{
	const char *const part[] = { k->region, SERVICE, "aws4_request" };
	struct buf first;

	buf_init(&first, TEXT_MAX);
	buf_addf(&first, "AWS4%s", k->secret);
	sha256_hmac_key(first.data ? first.data : "", first.len, date, DAY, ret);
	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++)
		sha256_hmac_key(ret, 32, part[i], strlen(part[i]), ret);
	if (first.data)
		explicit_bzero(first.data, first.len);
	buf_done(&first);
}

void sign_v4(const struct sign_request *r, const struct sign_key *k, struct buf *to)
{
	unsigned char key[32], signature[32];
	char hash[65], scope[256];
	struct buf b;

	to->failed |= !hash_request(r, hash);
	snprintf(scope, sizeof(scope), "%.*s/%.200s/" SERVICE "/aws4_request", DAY, r->date, k->region);
	buf_init(&b, TEXT_MAX);
	buf_addf(&b, METHOD "\n%s\n%s\n%s", r->date, scope, hash);
	to->failed |= buf_failed(&b);
	derive_key(k, r->date, key);
	sha256_hmac_key(key, sizeof(key), b.data ? b.data : "", b.len, signature);
	buf_done(&b);
	buf_addf(to, METHOD " Credential=%s/%s, SignedHeaders=", k->id, scope);
	add_header_names(to, r);
	buf_adds(to, ", Signature=");
	buf_adds(to, text_hex(hash, signature, sizeof(signature)));
}

/* ---- encoding ---- */

void uri_add_path(struct buf *to, const char *path)
{
	text_add_escaped(to, path, "-._~/");
}

void uri_add_query(struct buf *to, const struct uri_pair *pair, int n)
{
	struct uri_pair sorted[URI_PAIRS_MAX];

	assert(n <= URI_PAIRS_MAX);
	for (int i = 0; i < n; i++) {
		int at = i;

		for (; at && strcmp(sorted[at - 1].name, pair[i].name) > 0; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = pair[i];
	}
	for (int i = 0; i < n; i++) {
		buf_addf(to, "%s%s=", i ? "&" : "", sorted[i].name);
		text_add_escaped(to, sorted[i].value, "-._~");
	}
}

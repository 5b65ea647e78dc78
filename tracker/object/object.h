/* SPDX-License-Identifier: Apache-2.0 */
/* object.h: objects in a bucket of S3 or of a compatible server (MinIO, Ceph, Swift), or of Google Cloud Storage by its
 * XML API: look up, read in ranges, write whole or in parts, list, delete; or sign requests for a caller with its own
 * transfers. Keys, region and endpoint come from AWS's variables and files (settings.h), or from Google's
 * (settings.h).
 *
 * Calls block and retry temporary failures until no byte has arrived for timeout_s. Errors name SCHEME://BUCKET/KEY and
 * never a secret: ERR_NOENT not found, ERR_EXISTS changed (or already exists), ERR_USAGE refused, ERR_IO not finished
 * in time, ERR_CANCELED stopped. Any thread. */
#ifndef DPT_OBJECT_OBJECT_H
#define DPT_OBJECT_OBJECT_H

#include <stdatomic.h>

#include "tracker/curl/curl_request.h"

#define OBJECT_S3 "s3://"
#define OBJECT_GS "gs://"
#define OBJECT_BUCKET_BYTES 128
#define OBJECT_KEY_MAX 1024
#define OBJECT_ETAG_BYTES CURL_ETAG_BYTES
#define OBJECT_GENERATION_BYTES CURL_GENERATION_BYTES

struct object_client; /* a connection to one bucket */

struct object_opts {
	const char *scheme;	  /* of object_scheme; NULL: OBJECT_S3 */
	double timeout_s;	  /* 0: 60 */
	const _Atomic bool *stop; /* calls stop when it becomes true; NULL: never */
};

/* Returns OBJECT_S3 or OBJECT_GS; NULL: another kind of address. */
const char *object_scheme(const char *address);
bool object_is_address(const char *address); /* s3://… or gs://… */

/* s3://BUCKET/KEY or gs://BUCKET/KEY; the key may be empty. */
int object_split(const char *address, char ret_bucket[OBJECT_BUCKET_BYTES], const char **ret_key, struct err *err);

/* Reads variables and files. Without keys there, requests them from the container or instance that runs the process.
 * Google: requests an access token. */
int object_open(struct object_client **ret, const char *bucket, const struct object_opts *o, struct err *err);
void object_close(struct object_client *c); /* NULL is fine */

/* Returns the bucket's address, which distinguishes buckets of the same name; contains no secret. */
#define OBJECT_URL_BYTES 640
void object_url(struct object_client *c, char ret[OBJECT_URL_BYTES]);

struct object_facts {
	uint64_t bytes;
	char etag[OBJECT_ETAG_BYTES];		  /* as the server sends it, with quotes */
	char generation[OBJECT_GENERATION_BYTES]; /* Google's number of the version; "": none */
};

int object_head(struct object_client *c, const char *key, struct object_facts *ret, struct err *err);

struct object_get {
	const char *key;
	uint64_t begin, n; /* n 0: to the end */
	const char *etag;  /* another version is ERR_EXISTS; NULL: any version, but the same one to the end */
	int (*piece)(void *user, const void *bytes, size_t n); /* in order; a nonzero return stops with ERR_CANCELED */
	void *user;
};

int object_get(struct object_client *c, const struct object_get *g, struct object_facts *ret, struct err *err);

struct object_put {
	const char *key;
	const void *bytes;
	size_t n;
	const char *type;   /* MIME; NULL: application/octet-stream */
	const char *sha256; /* of the bytes in hex, for the signature; NULL: computed here */
	bool fresh;	    /* ERR_EXISTS if the key exists */
};

int object_put(struct object_client *c, const struct object_put *p, struct err *err);

/* Deletes n objects, 1,000 in a request where the server can. Those that do not exist count as deleted. After an error
 * any of them may be left. */
int object_delete(struct object_client *c, const char *const *keys, size_t n, struct err *err);

/* Entries in the order of their keys. With a delimiter, keys with a common prefix up to it are one entry. */
struct object_entry {
	const char *key; /* of a common prefix: with the delimiter at its end */
	bool shared;
	struct object_facts facts;
};

struct object_list {
	const char *prefix;
	const char *delimiter;							/* "/"; NULL: none */
	int (*each)(void *user, const struct object_entry *e, struct err *err); /* a nonzero return stops the listing
										 * and is returned */
	void *user;
};

int object_list(struct object_client *c, const struct object_list *l, struct err *err);

/* Uploads a large object part by part; it is visible only after object_upload_end. One thread; only parts with the
 * caller's numbers (from 1, finally without gaps) may be sent by several threads at once. */
struct object_upload;

struct object_part {
	int number;
	const void *bytes;
	size_t n;
	const char *sha256; /* see object_put */
};

int object_upload_begin(struct object_upload **ret, struct object_client *c, const char *key, const char *type,
			struct err *err);
int object_upload_part(struct object_upload *u, const void *bytes, size_t n, struct err *err);
int object_upload_numbered(struct object_upload *u, const struct object_part *p, struct err *err);
int object_upload_end(struct object_upload *u, struct err *err);
void object_upload_free(struct object_upload *u); /* aborts an upload that has not ended; NULL is fine */

/* Aborts unfinished uploads of these keys, which begin with the prefix, that other processes left, such as those of
 * killed ones. */
int object_upload_abandon(struct object_client *c, const char *prefix, const char *const *keys, size_t n,
			  struct err *err);

/* ---- for the caller's own transfers ---- */

struct uri_pair; /* sign.h */

struct object_ask {
	const char *method, *key;
	const struct uri_pair *query;
	int n_query;
	const char *payload; /* SHA-256 of the body in hex; NULL: no body */
};

struct object_signed {
	char *url;
	struct curl_slist *headers; /* lines; more may be appended */
	const char *ca;		    /* file of certificates to trust; NULL: the system's */
	unsigned identity;	    /* number of the credentials */
};

/* Valid for some minutes. May request new keys after the old ones expire. */
int object_sign(struct object_client *c, const struct object_ask *a, struct object_signed *ret, struct err *err);
void object_signed_done(struct object_client *c, struct object_signed *s);

/* The answer of a server that refuses. */
struct object_refusal {
	long status;
	const char *code;   /* of the answer's XML; "" */
	const char *region; /* of the header x-amz-bucket-region; "" */
	unsigned identity;  /* of the request, as object_sign set it */
	int renewed;	    /* how often this request was repeated for another token */
};

#define OBJECT_CODE_BYTES 128

/* Extracts the error code from an answer, such as "SignatureDoesNotMatch"; "" if it has none. */
void object_code(const char *xml, size_t n, char ret[OBJECT_CODE_BYTES]);

/* Returns true if the same request may succeed with a new signature: temporary keys expired, a token is no longer valid
 * (once for each request), or the bucket is in another region. */
bool object_learn(struct object_client *c, const struct object_refusal *r);

/* Appends to a message in room bytes what the user can do about the refusal, if that is known. */
void object_advise(struct object_client *c, const struct object_refusal *r, char *text, size_t room);

#endif

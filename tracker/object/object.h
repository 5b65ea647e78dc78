/* object.h: objects in a bucket of S3, or of what speaks like it (MinIO, Ceph, Swift, Google's with HMAC keys): looked
 * at, read in ranges, written whole or in parts, listed, removed; or requests signed for somebody who has transfers of
 * his own. Keys, region and endpoint come from AWS's variables and files (settings.h).
 *
 * Calls wait, and try again what failed on the way, until nothing has moved for timeout_s. Errors name s3://BUCKET/KEY
 * and never a secret: ERR_NOENT is not there, ERR_EXISTS has changed (or is there already), ERR_USAGE is refused,
 * ERR_IO could not be had in time, ERR_CANCELED was stopped. Any thread. */
#ifndef DPT_OBJECT_OBJECT_H
#define DPT_OBJECT_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/object/uri.h"

#define OBJECT_SCHEME "s3://"
#define OBJECT_BUCKET_BYTES 128
#define OBJECT_KEY_MAX 1024
#define OBJECT_ETAG_BYTES 160
#define OBJECT_PART_LEAST ((size_t)5 << 20) /* of an upload's parts, but the last */

struct object_client; /* of one bucket */

struct object_opts {
	double timeout_s;	  /* 0: 60 */
	const _Atomic bool *stop; /* what waits ends when it becomes true; NULL: never */
};

bool object_is_address(const char *address); /* s3://… */

/* s3://BUCKET/KEY; the key may be empty. */
int object_split(const char *address, char ret_bucket[OBJECT_BUCKET_BYTES], const char **ret_key, struct err *err);

/* Reads variables and files; asks nobody but, where those hold no keys, the container or instance it runs in. */
int object_open(struct object_client **ret, const char *bucket, const struct object_opts *o, struct err *err);
void object_close(struct object_client *c); /* NULL is fine */

/* Where the bucket is thought to lie, which tells it from others of its name; no secret. */
#define OBJECT_URL_BYTES 640
void object_url(struct object_client *c, char ret[OBJECT_URL_BYTES]);

struct object_facts {
	uint64_t bytes;
	char etag[OBJECT_ETAG_BYTES]; /* as the server writes it, quotes too */
};

int object_head(struct object_client *c, const char *key, struct object_facts *ret, struct err *err);

struct object_get {
	const char *key;
	uint64_t begin, n; /* n 0: to the end */
	const char *etag;  /* another version is ERR_EXISTS; NULL: any, and the same one to the end */
	int (*piece)(void *user, const void *bytes, size_t n); /* in order; nonzero ends it, ERR_CANCELED */
	void *user;
};

int object_get(struct object_client *c, const struct object_get *g, struct object_facts *ret, struct err *err);

struct object_put {
	const char *key;
	const void *bytes;
	size_t n;
	const char *type;   /* MIME; NULL: application/octet-stream */
	const char *sha256; /* of the bytes in hex, which the signature holds; NULL: it is found out */
	bool fresh;	    /* ERR_EXISTS where the key is taken */
};

int object_put(struct object_client *c, const struct object_put *p, struct err *err);
int object_delete(struct object_client *c, const char *key, struct err *err); /* 0 where there is none */

/* Objects in the order of their keys; with a delimiter, what shares a beginning up to it is one entry. */
struct object_entry {
	const char *key; /* of a shared beginning: with the delimiter at its end */
	bool shared;
	struct object_facts facts;
};

struct object_list {
	const char *prefix;
	const char *delimiter; /* "/"; NULL: none */
	int (*each)(void *user, const struct object_entry *e, struct err *err); /* nonzero ends it and is returned */
	void *user;
};

int object_list(struct object_client *c, const struct object_list *l, struct err *err);

/* A large object part by part; nothing of it is seen before object_upload_end. One thread; but parts whose numbers (1
 * and up, in the end without a gap) the caller gives may be sent by several at once. */
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
void object_upload_free(struct object_upload *u); /* what was not ended is taken back; NULL is fine */

/* Takes back what others began of this key and never ended: the parts of those who were killed. */
int object_upload_abandon(struct object_client *c, const char *key, struct err *err);

/* ---- for transfers of the caller's own ---- */

struct object_ask {
	const char *method, *key;
	const struct uri_pair *query;
	int n_query;
	const char *payload; /* SHA-256 of the body in hex; NULL: there is none */
};

struct curl_slist;

struct object_signed {
	char *url;
	struct curl_slist *headers; /* lines; more may be appended */
	const char *ca;		    /* file of certificates to trust; NULL: the usual ones */
};

/* Good for some minutes. May ask for new keys where they run out. */
int object_sign(struct object_client *c, const struct object_ask *a, struct object_signed *ret, struct err *err);
void object_signed_done(struct object_client *c, struct object_signed *s);

/* What a server says when it refuses. */
struct object_refusal {
	long status;
	const char *code;   /* of the answer's XML; "" */
	const char *region; /* of the header x-amz-bucket-region; "" */
};

#define OBJECT_CODE_BYTES 128

/* "SignatureDoesNotMatch": the code of an error from an answer's text, "" where there is none. */
void object_code(const char *xml, size_t n, char ret[OBJECT_CODE_BYTES]);

/* Whether the same may succeed when it is signed anew: lent keys ran out, or the bucket lies in another region. */
bool object_learn(struct object_client *c, const struct object_refusal *r);

#endif

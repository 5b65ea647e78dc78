/* SPDX-License-Identifier: Apache-2.0 */
/* object_tool.c: tracker/object for tests in Python. One call; on an error exits with 1 and prints code and text to
 * stderr:
 *   sign ID SECRET REGION DATE           requests on stdin: METHOD, key, payload, n, n x (name, value) of the query, m,
 *                                        m x headers, one per line. Prints an Authorization header per request.
 *   head|get BUCKET KEY [BEGIN N]        size and ETag, or bytes; delete|abandon BUCKET KEY…
 *   put|fresh BUCKET KEY                 stdin; upload BUCKET KEY PART_BYTES: in parts
 *   list BUCKET PREFIX [DELIMITER] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/object/object.h"
#include "tracker/object/sign.h"

#define STDIN_MAX ((size_t)1 << 30)

static double timeout_s(void)
{
	return getenv("OBJECT_TIMEOUT") ? strtod(getenv("OBJECT_TIMEOUT"), NULL) : 0;
}

static int write_out(void *user, const void *bytes, size_t n)
{
	(void)user;
	return fwrite(bytes, 1, n, stdout) != n;
}

static int print_entry(void *user, const struct object_entry *e, struct err *err)
{
	(void)user, (void)err;
	printf("%s %llu %s\n", e->shared ? "shared" : "object", (unsigned long long)e->facts.bytes, e->key);
	return 0;
}

static void read_stdin(struct buf *b)
{
	char piece[65536];
	size_t n;

	buf_init(b, STDIN_MAX);
	while ((n = fread(piece, 1, sizeof(piece), stdin)))
		buf_add(b, piece, n);
}

static char *line(void)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t n = getline(&text, &room, stdin);

	if (n <= 0) {
		free(text);
		return NULL;
	}
	text[n - 1] = '\0';
	return text;
}

/* Reads pairs of lines after a line with their number. */
static int pairs(const char *ret[][2])
{
	char *count = line();
	int n = count ? (int)strtol(count, NULL, 10) : 0;

	free(count);
	for (int i = 0; i < n; i++) {
		ret[i][0] = line();
		ret[i][1] = line();
	}
	return n;
}

static void free_pairs(const char *pair[][2], int n)
{
	for (int i = 0; i < 2 * n; i++)
		free((char *)pair[i / 2][i % 2]);
}

static void sign_next(char *method, char *argv[])
{
	char *key = line(), *payload = line();
	const char *query[URI_PAIRS_MAX][2], *header[URI_PAIRS_MAX][2];
	struct uri_pair pair[URI_PAIRS_MAX];
	struct sign_header signed_header[URI_PAIRS_MAX];
	int n = pairs(query), m = pairs(header);
	struct buf path, text, to;

	buf_init(&path, 1 << 16);
	buf_init(&text, 1 << 16);
	buf_init(&to, 1 << 16);
	buf_addc(&path, '/');
	uri_add_path(&path, key);
	buf_adds(&text, "");
	for (int i = 0; i < n; i++)
		pair[i] = (struct uri_pair){ query[i][0], query[i][1] };
	for (int i = 0; i < m; i++)
		signed_header[i] = (struct sign_header){ header[i][0], header[i][1] };
	uri_add_query(&text, pair, n);
	sign_v4(&(struct sign_request){ method, path.data, text.data ? text.data : "", signed_header, m, payload,
					argv[5] },
		&(struct sign_key){ argv[2], argv[3], argv[4] }, &to);
	printf("%s\n", to.data);
	buf_done(&path);
	buf_done(&text);
	buf_done(&to);
	free_pairs(query, n);
	free_pairs(header, m);
	free(key);
	free(payload);
}

static int upload(struct object_client *c, const char *key, size_t part, struct err *err)
{
	struct object_upload *u;
	struct buf b;
	int rc = object_upload_begin(&u, c, key, "text/plain", err);

	if (rc)
		return rc;
	read_stdin(&b);
	for (size_t at = 0; !rc && at < b.len; at += part)
		rc = object_upload_part(u, b.data + at, b.len - at < part ? b.len - at : part, err);
	if (!rc && !getenv("OBJECT_GIVE_UP"))
		rc = object_upload_end(u, err);
	object_upload_free(u);
	buf_done(&b);
	return rc;
}

static int put(struct object_client *c, const char *key, bool fresh, struct err *err)
{
	struct buf b;
	int rc;

	read_stdin(&b);
	rc = object_put(c, &(struct object_put){ .key = key, .bytes = b.data, .n = b.len, .fresh = fresh }, err);
	buf_done(&b);
	return rc;
}

static int call(struct object_client *c, char *argv[], int argc, struct err *err)
{
	struct object_facts facts = { .bytes = 0 };
	const char *what = argv[1], *key = argv[3];
	struct object_get get = { .key = key, .piece = write_out };
	int rc;

	if (argc > 5) {
		get.begin = strtoull(argv[4], NULL, 10);
		get.n = strtoull(argv[5], NULL, 10);
	}
	if (!strcmp(what, "get"))
		return object_get(c, &get, &facts, err);
	if (!strcmp(what, "delete"))
		return object_delete(c, (const char *const *)argv + 3, (size_t)argc - 3, err);
	if (!strcmp(what, "abandon"))
		return object_upload_abandon(c, "many/", (const char *const *)argv + 3, (size_t)argc - 3, err);
	if (!strcmp(what, "list"))
		return object_list(c, &(struct object_list){ key, argc > 4 ? argv[4] : NULL, print_entry, NULL }, err);
	if (!strcmp(what, "upload"))
		return upload(c, key, strtoul(argv[4], NULL, 10), err);
	if (strcmp(what, "head"))
		return put(c, key, !strcmp(what, "fresh"), err);
	rc = object_head(c, key, &facts, err);
	if (!rc)
		printf("%llu %s\n", (unsigned long long)facts.bytes, facts.etag);
	return rc;
}

int main(int argc, char *argv[])
{
	struct err err = ERR_INIT;
	struct object_client *c;
	int rc;

	if (argc == 6 && !strcmp(argv[1], "sign")) {
		for (char *method; (method = line()); free(method))
			sign_next(method, argv);
		return 0;
	}
	if (argc < 4)
		return 2;
	rc = object_open(&c, argv[2],
			 &(struct object_opts){ .scheme = getenv("OBJECT_SCHEME"), .timeout_s = timeout_s() }, &err);
	if (!rc) {
		rc = call(c, argv, argc, &err);
		object_close(c);
	}
	if (rc)
		fprintf(stderr, "%d %s\n", rc, err.text);
	return rc ? 1 : 0;
}

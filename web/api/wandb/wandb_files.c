/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_files.c: files of runs. The client asks for addresses and transfers files there without credentials, so an
 * address holds its own right: a MAC over what may be done, under a key that all processes of a store share. */
#include "web/api/wandb/wandb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "web/api/blob.h"
#include "web/store/store.h"
#include "web/store/wandb/artifact_versions.h"

enum { VALID_S = 3600, MAC_BYTES = 32 };
#define FILE_BYTES_MAX (INT64_C(1) << 40)

/* What an address allows. */
struct file_right {
	enum call_method method;
	const char *run, *path; /* path: below the artifacts of the run */
	int64_t bytes, until_s;
	uint64_t owner; /* the token that asked for it; 0: none was needed */
};

/* --- addresses -------------------------------------------------------------------------------------------------- */

static void make_mac(struct call *c, const struct file_right *g, unsigned char ret[MAC_BYTES])
{
	const char *text = arena_printf(c->arena, "%s\n%s\n%s\n%" PRId64 "\n%" PRId64 "\n%" PRIx64,
					call_method_name(g->method), g->run, g->path, g->bytes, g->until_s, g->owner);

	sha256_hmac(store_address_key(c->api->store), text, strlen(text), ret);
}

/* The server's address as the client knows it: a proxy says which it is. */
static const char *server_origin(struct call *c)
{
	const char *host = c->host->header(c, "X-Forwarded-Host"), *prefix = c->host->header(c, "X-Forwarded-Prefix");
	size_t n;

	host = host && *host ? host : c->host->header(c, "Host");
	prefix = prefix && *prefix == '/' ? prefix : "";
	n = strlen(prefix);
	while (n && prefix[n - 1] == '/')
		n--;
	return arena_printf(c->arena, "%s://%s%.*s", c->client.secure ? "https" : "http", host ? host : "localhost",
			    (int)n, prefix);
}

const char *wandb_address(struct call *c, enum call_method method, const char *run, const char *path)
{
	struct file_right g = { method, run, path, FILE_BYTES_MAX, (int64_t)time(NULL) + VALID_S, c->client.token };
	unsigned char mac[MAC_BYTES];
	char hex[2 * MAC_BYTES + 1];

	make_mac(c, &g, mac);
	return arena_printf(c->arena, "%s/storage/%s/%s?n=%" PRId64 "&e=%" PRId64 "&o=%" PRIx64 "&k=%s",
			    server_origin(c), run, wandb_escape(c, path, "-._~/"), g.bytes, g.until_s, g.owner,
			    text_hex(hex, mac, sizeof(mac)));
}

/* --- transfers -------------------------------------------------------------------------------------------------- */

static enum call_next fail_transfer(struct call *c, const struct err *err)
{
	return err->code == ERR_LIMIT ? call_fail(c, CALL_too_large, NULL, "%s", err->text)
				      : call_fail_err(c, "path", err);
}

/* Checks the MAC, the time, and that the token that asked still has its right; its grants then hold for the call. */
static bool is_granted(struct call *c, struct file_right *g)
{
	const char *mac = call_arg(c, "k"), *owner = call_arg(c, "o");
	enum token_scope want = g->method == METHOD_GET ? TOKEN_READ : TOKEN_WRITE;
	unsigned char right[MAC_BYTES], given[MAC_BYTES];
	struct token_try t = { .arena = c->arena };
	int needed;

	if (!call_arg_int(c, "n", &g->bytes, 0, FILE_BYTES_MAX) || !call_arg_int(c, "e", &g->until_s, 0, INT64_MAX) ||
	    !call_args_done(c))
		return false;
	g->owner = owner ? strtoull(owner, NULL, 16) : 0;
	t.owner = g->owner;
	make_mac(c, g, right);
	if (!mac || strlen(mac) != 2 * MAC_BYTES || !text_unhex(given, mac, MAC_BYTES) ||
	    !sha256_proof_equal(right, given, MAC_BYTES))
		return call_fail(c, CALL_forbidden, NULL, "this address does not allow that: ask for a new one"), false;
	if (g->until_s < (int64_t)time(NULL))
		return call_fail(c, CALL_forbidden, NULL, "this address has expired: ask for a new one"), false;
	needed = token_needed(c->api->store);
	if (!needed)
		return true;
	if (g->owner && token_of_owner(c->api->store, &t) >= want) {
		if (t.grants && *t.grants)
			api_restrict(c, t.grants, want);
		return true;
	}
	return call_fail(c, CALL_forbidden, NULL, "the token of this address was revoked"), false;
}

/* The place of the file; NULL after failing the call. */
static const char *find_place(struct call *c, const struct file_right *g)
{
	struct query_runs_opts o = { .ids = &g->run, .id_count = 1, .bare = true, .limit = 1 };
	struct query_runs runs;
	struct err err = ERR_INIT;

	if (!call_is_run_id(g->run) || !artifact_path_ok(g->path))
		return call_fail(c, CALL_forbidden, NULL, "this address does not allow that: ask for a new one"), NULL;
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return call_fail_err(c, NULL, &err), NULL;
	if (!runs.count)
		return call_fail(c, CALL_gone, "run", "run %s is deleted", g->run), NULL;
	return wandb_place(c, &runs.items[0], g->path);
}

static struct file_right read_grant(struct call *c)
{
	return (struct file_right){ .method = c->route->method, .run = c->address.vars[0], .path = c->address.rest };
}

static enum call_next reply_stored(struct call *c)
{
	buf_adds(&c->out, "{}\n");
	return CALL_DONE;
}

static enum call_next finish_transfer(struct call *c, const struct artifact_file *file)
{
	(void)file;
	return strncmp(c->address.rest, "media/", 6) ? reply_stored(c)
						     : wandb_settle(c, c->address.vars[0], reply_stored);
}

enum call_next on_wandb_put(struct call *c)
{
	struct file_right g = read_grant(c);
	const char *length = c->host->header(c, "Content-Length"), *place;

	if (!is_granted(c, &g) || !(place = find_place(c, &g)))
		return CALL_DONE;
	if (!length || strtoll(length, NULL, 10) > g.bytes)
		return call_fail(c, CALL_too_large, "Content-Length",
				 "Content-Length: this address allows %" PRId64 " bytes", g.bytes);
	return blob_put(c, &(struct blob_put){ place, fail_transfer, finish_transfer });
}

enum call_next on_wandb_get(struct call *c)
{
	struct file_right g = read_grant(c);
	const char *place;

	if (!is_granted(c, &g) || !(place = find_place(c, &g)))
		return CALL_DONE;
	return blob_reply(c, &(struct blob_reply){ .path = place, .download = true, .fail = fail_transfer });
}

/* --- GraphQL ---------------------------------------------------------------------------------------------------- */

enum call_next wandb_root_createRunFiles(struct call *c, const struct graphql_field *f)
{
	json_t *names = graphql_arg(f, "files"), *files = json_array(), *name;
	const char *run = graphql_text(f, "runName");
	struct wandb_run r;
	size_t i;

	if (!wandb_find(c, graphql_text(f, "entityName"), graphql_text(f, "projectName"), run ? run : "", &r)) {
		json_decref(files);
		return CALL_DONE;
	}
	json_array_foreach(names, i, name) {
		const char *path = json_string_value(name);

		if (path && !strncmp(path, "./", 2))
			path += 2;
		if (path && artifact_path_ok(path))
			json_array_append_new(files, json_pack("{s:s, s:s}", "name", json_string_value(name),
							       "uploadUrl", wandb_address(c, METHOD_PUT, r.id, path)));
	}
	if (r.found && !r.run.deleted && json_array_size(files) == json_array_size(names))
		return graphql_give(c, json_pack("{s:s, s:[], s:o}", "runID", r.id, "uploadHeaders", "files", files));
	json_decref(files);
	return graphql_refuse(
		c, r.found && !r.run.deleted ? "files: a name is no path that can be stored" : "there is no run %.100s",
		run ? run : "");
}

enum call_next wandb_root_markRunFilesUploaded(struct call *c, const struct graphql_field *f)
{
	(void)f;
	return graphql_give(c, json_pack("{s:b}", "success", 1));
}

/* A file of a run. */
static json_t *file_json(struct call *c, const struct query_run *run, const char *path, const struct artifact_entry *e)
{
	const char *url = wandb_address(c, METHOD_GET, run->id, path);

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:s?, s:n, s:n, s:s}", "__typename", "File",
			 "id", arena_printf(c->arena, "%s/%s", run->id, path), "name", path, "displayName", path, "url",
			 url, "directUrl", url, "uploadUrl", wandb_address(c, METHOD_PUT, run->id, path), "sizeBytes",
			 (json_int_t)e->bytes, "mimetype", "application/octet-stream", "digest", e->sha256, "md5",
			 "storagePath", "updatedAt", "1970-01-01T00:00:00Z");
}

struct file_walk {
	struct call *c;
	const struct query_run *run;
	json_t *names;	     /* only these; NULL or empty: all */
	const char *pattern; /* as of SQL's LIKE; NULL: all */
	json_t *files;
};

/* Matches a name against a pattern of SQL's LIKE. */
static bool is_like(const char *name, const char *pattern)
{
	for (; *pattern; name++, pattern++) {
		if (*pattern == '%') {
			for (pattern++; *name; name++)
				if (is_like(name, pattern))
					return true;
			return !*pattern;
		}
		if (!*name || (*pattern != '_' && *pattern != *name))
			return false;
	}
	return !*name;
}

static bool is_wanted_file(const struct file_walk *w, const char *path)
{
	json_t *name;
	size_t i;

	if (w->pattern && !is_like(path, w->pattern))
		return false;
	json_array_foreach(w->names, i, name)
		if (json_is_string(name) && !strcmp(json_string_value(name), path))
			return true;
	return !json_array_size(w->names);
}

/* Lists a folder of the run and what is below; files of artifacts are listed with these. */
static bool walk_files(struct file_walk *w, const char *folder, int depth)
{
	struct artifact_entries list;
	struct err err = ERR_INIT;

	if (artifact_list(w->c->api->store, wandb_place(w->c, w->run, folder), w->c->arena, &list, &err))
		return call_fail_err(w->c, NULL, &err), false;
	for (size_t i = 0; i < list.count; i++) {
		const char *path = arena_printf(w->c->arena, "%s%s%s", folder, *folder ? "/" : "", list.items[i].name);

		if (!strcmp(path, WANDB_ARTIFACTS))
			continue;
		if (!list.items[i].folder && is_wanted_file(w, path))
			json_array_append_new(w->files, file_json(w->c, w->run, path, &list.items[i]));
		else if (list.items[i].folder && depth < 64 && !walk_files(w, path, depth + 1))
			return false;
	}
	return true;
}

json_t *wandb_files(struct call *c, json_t *object, const struct graphql_field *f)
{
	const char *after = graphql_text(f, "after");
	int64_t first = graphql_int(f, "first", 50, 1, 1000), from = after ? strtoll(after, NULL, 10) : 0;
	struct file_walk w = { .c = c, .names = graphql_arg(f, "names"), .pattern = graphql_text(f, "pattern") };
	struct wandb_run r;
	json_t *page = json_array();
	int64_t n;

	if (!wandb_find(c, NULL, NULL, json_string_value(json_object_get(object, "id")), &r) || !r.found)
		return page;
	w.run = &r.run;
	w.files = json_array();
	walk_files(&w, "", 0);
	n = (int64_t)json_array_size(w.files);
	for (int64_t i = from; i < n && i < from + first; i++)
		json_array_append(page, json_array_get(w.files, (size_t)i));
	json_decref(w.files);
	return graphql_connection(page, arena_printf(c->arena, "%" PRId64, from + first), from + first < n, n);
}

json_t *wandb_file_count(struct call *c, json_t *object, const struct graphql_field *f)
{
	json_t *all = wandb_files(c, object, f), *count = json_incref(json_object_get(all, "totalCount"));

	json_decref(all);
	return count;
}

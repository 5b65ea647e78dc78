/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_artifact_files.c: the files of W&B's artifacts, which are files of the run that made a version, below
 * wandb-artifacts/COLLECTION. A version's manifest names all its files: those that were uploaded for it, those of
 * earlier versions, and references. Several runs, or an incremental artifact, upload parts of a manifest; the commit
 * puts them together. */
#include "web/api/wandb/wandb_artifacts.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/md5.h"
#include "tracker/base/text.h"
#include "tracker/base/thread.h"
#include "web/api/blob.h"

/* Path of a file of the version below the artifacts of its run; name NULL: of its manifest. */
static const char *version_path(struct call *c, const struct artifact_version *v, const char *name)
{
	return name ? arena_printf(c->arena, WANDB_ARTIFACTS "/%s/v%" PRId64 "/%s", v->collection, v->version, name)
		    : arena_printf(c->arena, WANDB_ARTIFACTS "/%s/v%" PRId64 ".wandb_manifest.json", v->collection,
				   v->version);
}

/* Path of a part of the manifest; part "": the folder of all. A part is named BASE-DIGITS.json, after the id of the
 * version that it adds to, or 0. */
static const char *part_path(struct call *c, const struct artifact_version *v, const char *part)
{
	return arena_printf(c->arena, WANDB_ARTIFACTS "/%s/v%" PRId64 ".parts%s%s%s", v->collection, v->version,
			    *part ? "/" : "", part, *part ? ".json" : "");
}

/* The place of a path of the version among the store's files. */
static const char *version_place(struct call *c, const struct artifact_version *v, const char *path)
{
	return arena_printf(c->arena, "%" PRId64 "/%s/artifacts/%s", v->experiment, v->run, path);
}

/* The size of a file; -1: it is not there. */
static int64_t file_size(struct call *c, const struct artifact_version *v, const char *path)
{
	struct artifact_file f;

	if (!*v->run || artifact_open(c->api->store, version_place(c, v, path), &f, NULL))
		return -1;
	if (f.fd >= 0)
		close(f.fd);
	return (int64_t)f.bytes;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* The files of a version; none if there is no version or they cannot be read. */
static struct artifact_version_files read_files(struct call *c, const struct artifact_version *v)
{
	struct artifact_version_files files = { 0 };

	if (v)
		artifact_version_files(c->api->store, v->id, c->arena, &files, NULL);
	return files;
}

/* The version whose files were looked at last. */
struct birth {
	const struct artifact_version *of; /* NULL: none yet */
	struct artifact_version_files files;
};

static int compare_names(const void *name, const void *file)
{
	return strcmp(name, ((const struct artifact_version_file *)file)->name);
}

/* Where the bytes of a file are: its path in the version that it was uploaded for, which is then birth->of. NULL: it
 * is a reference, or that version is not there. */
static const char *find_bytes(struct call *c, const struct artifact_version_file *file, struct birth *birth)
{
	const struct artifact_version_file *found = NULL;
	struct artifact_version_files *all = &birth->files;

	if (!file->born)
		return NULL;
	if (!birth->of || birth->of->id != file->born) {
		birth->of =
			wandb_find_version(c, &(struct artifact_version_sel){ .by = ARTIFACT_BY_ID, .id = file->born });
		*all = read_files(c, birth->of);
	}
	if (all->count)
		found = bsearch(file->name, all->items, all->count, sizeof(*all->items), compare_names);
	if (!found || strcmp(found->md5, file->md5) || found->born != file->born)
		for (found = all->items; found < all->items + all->count; found++)
			if (!strcmp(found->md5, file->md5) && found->born == file->born)
				break;
	return all->count && found < all->items + all->count ? version_path(c, birth->of, found->name) : NULL;
}

json_t *wandb_artifact_manifest(struct call *c, json_t *object, const struct graphql_field *f)
{
	const struct artifact_version *v = wandb_version_of(c, object);
	const char *url = v ? wandb_address(c, METHOD_GET, v->run, version_path(c, v, NULL)) : NULL;

	(void)f;
	return v ? json_pack("{s:s, s:s, s:{s:s, s:s, s:s}}", "__typename", "ArtifactManifest", "id",
			     wandb_artifact_id(c, v->id), "file", "__typename", "File", "id",
			     wandb_artifact_id(c, v->id), "directUrl", url)
		 : NULL;
}

static json_t *version_file_json(struct call *c, const struct artifact_version_file *file, struct birth *birth)
{
	const char *path = find_bytes(c, file, birth);
	const char *url = path ? wandb_address(c, METHOD_GET, birth->of->run, path) : "";
	int64_t bytes = file->bytes < 0 && path ? file_size(c, birth->of, path) : file->bytes;

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:s}", "__typename", "File", "id",
			 path ? path : file->name, "name", file->name, "displayName", file->name, "url", url,
			 "directUrl", url, "sizeBytes", (json_int_t)(bytes > 0 ? bytes : 0), "mimetype",
			 "application/octet-stream", "digest", file->md5, "md5", file->md5, "storagePath",
			 path ? path : "", "updatedAt", "1970-01-01T00:00:00Z");
}

json_t *wandb_artifact_files(struct call *c, json_t *object, const struct graphql_field *f)
{
	json_t *inner = json_object_get(object, "artifact"), *nodes = json_array(), *names = graphql_arg(f, "names"),
	       *name;
	const struct artifact_version_files files = read_files(c, wandb_version_of(c, inner ? inner : object));
	const char *after = graphql_text(f, "after");
	int64_t first = graphql_int(f, "first", 1000, 1, 1000), from = after ? strtoll(after, NULL, 10) : 0, n = 0;
	struct birth birth = { 0 };
	size_t k;

	for (size_t i = 0; i < files.count; i++) {
		json_array_foreach(names, k, name)
			if (json_is_string(name) && !strcmp(json_string_value(name), files.items[i].name))
				break;
		if (json_array_size(names) && k == json_array_size(names))
			continue;
		if (n >= from && n < from + first)
			json_array_append_new(nodes, version_file_json(c, &files.items[i], &birth));
		n++;
	}
	return graphql_connection(nodes, arena_printf(c->arena, "%" PRId64, from + first), from + first < n, n);
}

/* "size" or "fileCount". */
json_t *wandb_artifact_size(struct call *c, json_t *object, const struct graphql_field *f)
{
	const struct artifact_version *v = wandb_version_of(c, object);
	const struct artifact_version_files files = read_files(c, v);
	int64_t bytes = 0, one;

	for (size_t i = 0; i < files.count && !strcmp(f->name, "size"); i++) {
		one = files.items[i].bytes;
		one = one < 0 ? file_size(c, v, version_path(c, v, files.items[i].name)) : one;
		bytes += one > 0 ? one : 0;
	}
	return json_integer(strcmp(f->name, "size") ? (json_int_t)files.count : bytes);
}

/* --- uploads ---------------------------------------------------------------------------------------------------- */

/* The part in the id of a manifest, which is "Artifact:VERSION:BASE-DIGITS"; NULL: it names a whole manifest. */
static const char *part_of_id(struct call *c, const char *id)
{
	char text[96] = "";
	const char *part;

	text_unbase64(text, sizeof(text) - 1, id);
	part = strncmp(text, "Artifact:", 9) ? NULL : strchr(text + 9, ':');
	return part && part[1] && part[1 + strspn(part + 1, "0123456789abcdef-")] == '\0'
		       ? arena_strdup(c->arena, part + 1)
		       : NULL;
}

/* A manifest with the address that takes it; id: as the client will name it. */
static enum call_next give_upload(struct call *c, const struct artifact_version *v, const char *id)
{
	const char *part = part_of_id(c, id), *path = part ? part_path(c, v, part) : version_path(c, v, NULL);

	return graphql_give(c, json_pack("{s:{s:s, s:{s:s, s:s, s:[]}}}", "artifactManifest", "id", id, "file", "id",
					 id, "uploadUrl", wandb_address(c, METHOD_PUT, v->run, path), "uploadHeaders"));
}

/* A version that waits for its files; NULL after refusing. */
static const struct artifact_version *find_pending(struct call *c, const char *id)
{
	const struct artifact_version *v = wandb_version_of_id(c, id);

	if (v && v->state == ARTIFACT_PENDING && *v->run)
		return v;
	if (c->status == 200)
		graphql_refuse(c, !v				 ? "there is no such artifact"
				  : v->state == ARTIFACT_PENDING ? "the artifact has no run"
								 : "the artifact is committed: log a new version");
	return NULL;
}

static enum call_next give_manifest(struct call *c, const struct ingest_result *res)
{
	const struct graphql_field *f = *graphql_own(c);
	const char *type = wandb_default(graphql_text(f, "type"), "FULL");
	int64_t base = strcmp(type, "INCREMENTAL") ? 0 : wandb_read_artifact_id(graphql_text(f, "baseArtifactID"));
	const struct artifact_version *v = find_pending(c, wandb_artifact_id(c, strtoll(res->id, NULL, 10)));
	const char *id;
	char digits[33];

	if (!v)
		return CALL_DONE;
	if (!strcmp(type, "FULL"))
		return give_upload(c, v, wandb_artifact_id(c, v->id));
	wandb_id(digits, "%s %.9f", wandb_default(graphql_text(f, "runName"), ""), clock_wall_s());
	id = arena_printf(c->arena, "Artifact:%" PRId64 ":%" PRId64 "-%.12s", v->id, base > 0 ? base : 0, digits);
	return give_upload(c, v, wandb_base64(c, id, strlen(id)));
}

enum call_next wandb_root_createArtifactManifest(struct call *c, const struct graphql_field *f)
{
	struct artifact_version_op op = { .what = ARTIFACT_RUN,
					  .id = wandb_read_artifact_id(graphql_text(f, "artifactID")) };
	struct wandb_run r;

	if (!wandb_run_of_args(c, f, &r))
		return CALL_DONE;
	op.run = r.found ? r.id : "";
	*graphql_own(c) = (void *)(uintptr_t)f;
	return wandb_submit_version(c, &op, give_manifest);
}

enum call_next wandb_root_updateArtifactManifest(struct call *c, const struct graphql_field *f)
{
	const char *id = graphql_text(f, "artifactManifestID");
	const struct artifact_version *v = find_pending(c, id);

	return v ? give_upload(c, v, id) : CALL_DONE;
}

/* Addresses for the files of a request, in its order. */
enum call_next wandb_root_createArtifactFiles(struct call *c, const struct graphql_field *f)
{
	json_t *files = graphql_arg(f, "artifactFiles"), *file, *nodes;
	const char *id = json_string_value(json_object_get(json_array_get(files, 0), "artifactID")), *name, *of;
	const struct artifact_version *v = json_array_size(files) ? find_pending(c, id) : NULL;
	size_t i;

	if (json_array_size(files) && !v)
		return CALL_DONE;
	json_array_foreach(files, i, file) {
		name = json_string_value(json_object_get(file, "name"));
		of = json_string_value(json_object_get(file, "artifactID"));
		if (!name || !artifact_path_ok(name) || !of || strcmp(of, id))
			return graphql_refuse(c, "artifactFiles[%zu]: expected a path, and one artifact for all", i);
	}
	nodes = json_array();
	json_array_foreach(files, i, file) {
		const char *path = version_path(c, v, json_string_value(json_object_get(file, "name")));

		json_array_append_new(nodes, json_pack("{s:s, s:s, s:s, s:[], s:n, s:{s:s}}", "__typename", "File",
						       "storagePath", path, "uploadUrl",
						       wandb_address(c, METHOD_PUT, v->run, path), "uploadHeaders",
						       "uploadMultipartUrls", "artifact", "id", id));
	}
	return graphql_give(c, json_pack("{s:o}", "files", graphql_connection(nodes, NULL, false, (int64_t)i)));
}

/* --- the commit ------------------------------------------------------------------------------------------------- */

struct commit {
	struct call *c;
	const struct artifact_version *v;
	const char **places; /* of the manifests, the later ones hold */
	size_t count;
	bool merged; /* the whole is written to `place` */
	const char *place;
	json_t *manifest;
	struct artifact_file written;
	struct err err;
	int rc;
};

static void drop_commit(void *arg)
{
	json_decref(((struct commit *)arg)->manifest);
}

/* Lists what is read: the manifest, or that of the version to which the parts add, then the parts. Returns false after
 * failing the call. */
static bool list_manifests(struct call *c, struct commit *m)
{
	const char *folder = version_place(c, m->v, part_path(c, m->v, ""));
	struct artifact_version_sel sel = { .by = ARTIFACT_BY_ID };
	const struct artifact_version *base;
	struct artifact_entries parts;

	if (artifact_list(c->api->store, folder, c->arena, &parts, &m->err))
		return call_fail_err(c, NULL, &m->err), false;
	m->places = arena_array(c->arena, 2 * parts.count + 1, sizeof(*m->places));
	m->merged = parts.count > 0;
	for (size_t i = 0; i < parts.count; i++) {
		sel.id = strtoll(parts.items[i].name, NULL, 10);
		base = wandb_find_version(c, &sel);
		if (base && base->state == ARTIFACT_COMMITTED && base->experiment == m->v->experiment)
			m->places[m->count++] = version_place(c, base, version_path(c, base, NULL));
		m->places[m->count++] = arena_printf(c->arena, "%s/%s", folder, parts.items[i].name);
	}
	m->place = version_place(c, m->v, version_path(c, m->v, NULL));
	if (!m->merged)
		m->places[m->count++] = m->place;
	return c->status == 200;
}

/* Adds the files that a manifest names. */
static int add_manifest(struct commit *m, const struct buf *text)
{
	json_t *one = json_too_much(text->data, text->len) ? NULL : json_lenient(text->data, text->len, 0, NULL);
	json_t *contents = json_object_get(one, "contents");

	if (!json_is_object(contents)) {
		json_decref(one);
		return err_set(&m->err, ERR_DAMAGED, "it is no manifest of W&B's client");
	}
	if (m->manifest) {
		json_t *whole = json_object_get(m->manifest, "contents");

		json_object_update(whole, contents);
		json_object_set(one, "contents", whole);
		json_decref(m->manifest);
	}
	m->manifest = one;
	return 0;
}

static void wake_writer(void *arg)
{
	sem_post(arg);
}

/* Stores the whole manifest as a file. */
static int write_manifest(struct commit *m)
{
	struct artifacts *files = store_artifacts(m->c->api->store);
	struct artifact_upload *u = NULL;
	struct artifact_room room = { .wake = wake_writer };
	char *text = json_dumps(m->manifest, JSON_COMPACT);
	sem_t more;
	int rc;

	sem_init(&more, 0, 0);
	room.arg = &more;
	rc = text ? artifact_begin(&u, files, m->place, &room, &m->err) : ERR_NOMEM;
	while (!rc && (rc = artifact_write(u, text, strlen(text), &m->err)) == ARTIFACT_WAIT) {
		sem_wait(&more);
		rc = 0;
	}
	rc = rc < 0 ? rc : artifact_commit(u, &m->written, &m->err);
	artifact_end(u);
	sem_destroy(&more);
	free(text);
	return rc;
}

static void *read_manifests(void *arg)
{
	struct commit *m = arg;
	struct buf text;

	buf_init(&text, CALL_BUFFERED_MAX);
	for (size_t i = 0; i < m->count && !m->rc; i++) {
		buf_reset(&text);
		m->rc = blob_load(m->c, m->places[i], &text, &m->err);
		if (!m->rc && buf_failed(&text))
			m->rc = err_set(&m->err, ERR_LIMIT, "it is larger than 64 MiB");
		m->rc = m->rc ? m->rc : add_manifest(m, &text);
	}
	buf_done(&text);
	if (!m->rc && m->merged)
		m->rc = write_manifest(m);
	call_wake(m->c);
	return NULL;
}

static int compare_manifest_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The digest of a manifest, as W&B's client computes it: of all names and digests, by name. */
static const char *manifest_digest(struct call *c, json_t *contents)
{
	static const char head[] = "wandb-artifact-manifest-v1\n";
	const char **names = arena_array(c->arena, json_object_size(contents) + 1, sizeof(*names)), *name, *line;
	unsigned char sum[16];
	char hex[33];
	size_t n = 0;
	struct md5 md5;
	json_t *entry;

	json_object_foreach(contents, name, entry)
		names[n++] = name;
	qsort(names, n, sizeof(*names), compare_manifest_names);
	md5_init(&md5);
	md5_add(&md5, head, sizeof(head) - 1);
	for (size_t i = 0; i < n; i++) {
		entry = json_object_get(json_object_get(contents, names[i]), "digest");
		line = arena_printf(c->arena, "%s:%s\n", names[i], wandb_default(json_string_value(entry), ""));
		md5_add(&md5, line, strlen(line));
	}
	md5_end(&md5, sum);
	return arena_strdup(c->arena, text_hex(hex, sum, sizeof(sum)));
}

/* Commits the version with the files of its manifest. */
static enum call_next commit_files(struct call *c, const struct ingest_result *res)
{
	struct commit *m = *graphql_own(c);
	json_t *contents = json_object_get(m->manifest, "contents"), *said = wandb_parse(m->v->said), *entry, *size;
	struct artifact_version_op op = { .what = ARTIFACT_COMMIT, .id = m->v->id };
	struct artifact_version_file *file;
	struct ingest_kv *aliases;
	const char *name;

	(void)res;
	op.pair_count = wandb_read_names(c, json_object_get(said, "aliases"), "alias", "", &aliases);
	json_decref(said);
	op.pairs = aliases;
	op.digest = m->merged ? manifest_digest(c, contents) : NULL;
	op.files.items = arena_array(c->arena, json_object_size(contents) + 1, sizeof(*op.files.items));
	json_object_foreach(contents, name, entry) {
		file = &op.files.items[op.files.count++];
		file->name = name;
		file->md5 = wandb_default(json_string_value(json_object_get(entry, "digest")), "");
		size = json_object_get(entry, "size");
		file->bytes = size ? json_integer_value(size) : -1;
		file->born = wandb_read_artifact_id(json_string_value(json_object_get(entry, "birthArtifactID")));
		file->born = json_is_string(json_object_get(entry, "ref")) ? 0 : file->born > 0 ? file->born : m->v->id;
	}
	return wandb_submit_version(c, &op, wandb_give_version);
}

/* After the manifests were read. */
static enum call_next record_manifest(struct call *c)
{
	struct commit *m = *graphql_own(c);
	const struct artifact_digest d = { .path = m->place,
					   .bytes = (int64_t)m->written.bytes,
					   .time_ns = m->written.time_ns,
					   .object = m->written.object[0] ? m->written.object : NULL,
					   .sha256 = m->written.sha256 };
	const struct ingest_op op = { .kind = &artifact_change_put, .more = &d };

	if (m->rc)
		return graphql_refuse(c, "the manifest of %.100s cannot be read: %s", m->v->collection,
				      m->rc == ERR_NOENT ? "it was not uploaded" : m->err.text);
	return m->merged ? api_submit(c, &(struct api_change){ .op = &op, .field = "artifact", .then = commit_files })
			 : commit_files(c, NULL);
}

enum call_next wandb_root_commitArtifact(struct call *c, const struct graphql_field *f)
{
	struct commit *m = arena_alloc(c->arena, sizeof(*m));

	*m = (struct commit){ .c = c, .v = wandb_version_of_id(c, graphql_text(f, "artifactID")), .err = ERR_INIT };
	if (!m->v)
		return c->status == 200 ? graphql_refuse(c, "there is no such artifact") : CALL_DONE;
	call_defer(c, drop_commit, m);
	*graphql_own(c) = m;
	if (!list_manifests(c, m))
		return CALL_DONE;
	if (artifact_may_write(c->api->store, m->place, &m->err))
		return call_fail_err(c, NULL, &m->err);
	c->resume = record_manifest;
	if (!thread_start_detached(read_manifests, m, 256 << 10))
		return CALL_WAIT;
	return graphql_refuse(c, "there is no thread for the manifest: try again");
}

/* --- downloads by content: /artifactsV2/REGION/ENTITY[/PROJECT/COLLECTION[/ID]]/ID/MD5[/NAME] -----------------------
 */

static enum call_next fail_download(struct call *c, const struct err *err)
{
	return call_fail_err(c, "path", err);
}

enum call_next on_wandb_artifact_get(struct call *c)
{
	char *rest = arena_strdup(c->arena, c->address.rest), *part, *save = NULL;
	const char *id = NULL, *path;
	struct artifact_version_file file = { 0 };
	struct birth birth = { 0 };
	unsigned char md5[16];

	for (part = strtok_r(rest, "/", &save); part && !file.md5; part = strtok_r(NULL, "/", &save))
		if (id && text_unhex(md5, part, strlen(part) == 32 ? 16 : 0) && strlen(part) == 32)
			file.md5 = wandb_base64(c, md5, 16);
		else if (wandb_read_artifact_id(part) >= 0)
			id = part;
	file.name = "";
	file.born = file.md5 ? wandb_read_artifact_id(id) : 0;
	path = find_bytes(c, &file, &birth);
	if (c->status != 200)
		return CALL_DONE;
	if (!path)
		return call_fail(c, CALL_not_found, "artifact", "there is no such file of an artifact");
	return blob_reply(c, &(struct blob_reply){ .path = version_place(c, birth.of, path),
						   .download = true,
						   .fail = fail_download });
}

/* SPDX-License-Identifier: Apache-2.0 */
/* meta.c: the server itself: health, versions, metrics for Prometheus, openapi.json; and the maintenance of its store:
 * /backup, /doctor. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "web/api/native/native_inside.h"
#include "web/assets/asset.h"
#include "web/store/base/beneath.h"
#include "web/store/maintenance/maintenance.h"

/* Writes the members worst, checked_time and findings; without texts for callers who may only see the levels. */
static void findings_write(struct js *j, const struct check_report *r, bool texts)
{
	size_t i;

	js_key_str(j, "worst", check_level_name(r->worst));
	js_key(j, "checked_time");
	if (r->time_ms)
		js_int(j, r->time_ms);
	else
		js_null(j);
	js_key_open(j, "findings", '[');
	for (i = 0; i < r->count; i++) {
		js_open(j, '{');
		js_key_str(j, "level", check_level_name(r->items[i].level));
		js_key_str(j, "check", r->items[i].name);
		if (texts)
			js_key_str(j, "text", r->items[i].text);
		js_close(j, '}');
	}
	js_close(j, ']');
}

/* --- backup, doctor: on a thread of the store while the call is suspended ----------------------------------- */

static void wake_upkeep_call(void *arg)
{
	call_wake(*(struct call **)arg);
}

enum call_next upkeep_start(struct call *c, void (*fn)(void *arg), void *arg, enum call_next (*resume)(struct call *c))
{
	struct err err = ERR_INIT;

	c->waiting = arg;
	c->resume = resume;
	return store_work(c->api->store, fn, wake_upkeep_call, arg, &err) ? call_fail_err(c, NULL, &err) : CALL_WAIT;
}

struct upkeep_backup {
	struct call *call;
	const char *path;
	const char *below; /* the part of path below the folder for backups; NULL: not in there */
	struct store_backup_result res;
	struct err err;
	int rc;
};

/* No folder of the path may be a link, or lead out of the folder for backups. */
static int check_backup_folders(struct upkeep_backup *b)
{
	const char *dir = b->call->api->backup_dir, *name;
	int top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int folder = top < 0 ? -1 : beneath_parent(top, b->below, false, &name);
	bool good = folder >= 0 && *name && strcmp(name, ".") && strcmp(name, "..");

	if (folder >= 0)
		close(folder);
	if (top >= 0)
		close(top);
	return good ? 0 : err_set(&b->err, ERR_USAGE, "path: expected a new name in a folder below %s", dir);
}

static void run_backup_work(void *arg)
{
	struct upkeep_backup *b = arg;

	b->rc = b->below ? check_backup_folders(b) : 0;
	if (!b->rc)
		b->rc = store_backup(b->call->api->store, b->path, &b->res, &b->err);
}

static enum call_next reply_backup(struct call *c)
{
	const struct upkeep_backup *b = c->waiting;
	struct js j = { .out = &c->out };

	if (b->rc)
		return call_fail_err(c, b->rc == ERR_USAGE || b->rc == ERR_EXISTS ? "path" : NULL, &b->err);
	js_open(&j, '{');
	js_key_str(&j, "path", b->path);
	js_key_int(&j, "bytes", (int64_t)b->res.bytes);
	js_key_int(&j, "artifacts", (int64_t)b->res.artifacts);
	js_key_int(&j, "artifact_bytes", (int64_t)b->res.artifact_bytes);
	js_key_double(&j, "seconds", b->res.seconds);
	return js_reply(c, &j);
}

/* Makes the path absolute: of clients below the folder for backups, of the owner anywhere. */
static enum call_next read_backup_path(struct call *c, struct upkeep_backup *b, const char *path)
{
	const char *dir = c->api->backup_dir;
	size_t n = dir ? strlen(dir) : 0;

	b->path = arena_strdup(c->arena, path);
	if (api_owner(c) && *path == '/')
		return CALL_WAIT;
	if (dir && !strncmp(path, dir, n) && path[n] == '/')
		path += n + 1;
	if (*path == '/')
		return call_fail(c, CALL_forbidden, "path",
				 "path: only the owner of the server may choose any folder, with dptrack backup on its "
				 "machine: expected a name %s%s",
				 dir ? "below " : "that begins with dptrack.db., or start the server with --backup-dir",
				 dir ? dir : "");
	if (dir) {
		b->below = arena_strdup(c->arena, path);
		b->path = arena_printf(c->arena, "%s/%s", dir, path);
	}
	return CALL_WAIT;
}

enum call_next on_backup_post(struct call *c)
{
	struct upkeep_backup *b = arena_alloc(c->arena, sizeof(*b));
	const char *path = NULL;
	const struct json_field fields[] = { { "path", JSON_KIND_STRING, true, &path, NULL }, { 0 } };

	if (!json_args(c, fields))
		return CALL_DONE;
	b->call = c;
	if (read_backup_path(c, b, path) != CALL_WAIT)
		return CALL_DONE;
	return upkeep_start(c, run_backup_work, b, reply_backup);
}

struct upkeep_doctor {
	struct call *call;
	bool full;
	struct check_report report;
	struct err err;
	int rc;
};

static void run_doctor_work(void *arg)
{
	struct upkeep_doctor *d = arg;

	d->rc = check_store(d->call->api->store, d->full, d->call->arena, &d->report, &d->err);
}

static enum call_next reply_doctor(struct call *c)
{
	const struct upkeep_doctor *d = c->waiting;
	struct js j = { .out = &c->out };

	if (d->rc)
		return call_fail_err(c, NULL, &d->err);
	js_open(&j, '{');
	findings_write(&j, &d->report, true);
	return js_reply(c, &j);
}

enum call_next on_doctor_post(struct call *c)
{
	struct upkeep_doctor *d = arena_alloc(c->arena, sizeof(*d));
	const struct json_field fields[] = { { "full", JSON_KIND_BOOL, false, &d->full, NULL }, { 0 } };

	if (!json_args(c, fields))
		return CALL_DONE;
	d->call = c;
	return upkeep_start(c, run_doctor_work, d, reply_doctor);
}

/* --- health, versions, metrics, openapi.json -------------------------------------------------------------------- */

static void write_folder_state(struct js *j, struct follow *follow)
{
	struct follow_stats f;

	follow_stats(follow, &f);
	js_key_open(j, "folder", '{');
	js_key_bool(j, "scanning", f.scanning);
	js_key_bool(j, "polling", f.polling);
	js_key_int(j, "folders", (int64_t)f.folders);
	js_key_int(j, "files", (int64_t)f.files);
	js_key_int(j, "files_waiting", (int64_t)f.files_waiting);
	js_key_int(j, "bytes_read", (int64_t)f.bytes_read);
	js_key_int(j, "files_bad", (int64_t)f.files_bad);
	js_close(j, '}');
}

/* Replies with the findings of the background check, without texts: the route needs no token. */
static enum call_next reply_verbose_health(struct call *c, const struct store_stats *s)
{
	struct js j = { .out = &c->out };
	const struct check_report r = check_last(c->api->store, c->arena);

	c->type = "application/json";
	js_open(&j, '{');
	js_key_str(&j, "status", s->write_error || r.worst == CHECK_ERROR ? "error" : check_level_name(r.worst));
	js_key_int(&j, "unfolded_points", (int64_t)s->log_points);
	js_key_bool(&j, "writes", !s->write_error);
	if (c->api->follow)
		write_folder_state(&j, c->api->follow);
	if (c->api->counters) {
		js_key_open(&j, "graphql", '{');
		js_key_int(&j, "refused", (int64_t)atomic_load(&c->api->counters->graphql_refused));
		js_key_int(&j, "unknown", (int64_t)atomic_load(&c->api->counters->graphql_unknown));
		js_close(&j, '}');
	}
	findings_write(&j, &r, false);
	return js_reply(c, &j);
}

enum call_next on_health_get(struct call *c)
{
	int64_t verbose = 0;
	struct store_stats s;

	if (!call_arg_int(c, "verbose", &verbose, 0, 1) || !call_args_done(c))
		return CALL_DONE;
	c->type = "text/plain; charset=utf-8";
	c->reply.cache = "no-store";
	store_stats(c->api->store, &s);
	if (s.write_error) /* reads still work, but monitoring must learn that writes fail */
		c->status = s.write_error == ERR_NOSPC ? 507 : 503;
	if (verbose)
		return reply_verbose_health(c, &s);
	if (s.write_error)
		buf_addf(&c->out, "writes fail: %s\n", s.write_error_text);
	else
		buf_adds(&c->out, "OK\n");
	return CALL_DONE;
}

/* For a load balancer: 200 if this process may get requests. */
enum call_next on_ready_get(struct call *c)
{
	const struct api_counters *n = c->api->counters;
	struct store_stats s;

	if (!call_args_done(c))
		return CALL_DONE;
	c->type = "text/plain; charset=utf-8";
	c->reply.cache = "no-store";
	store_stats(c->api->store, &s);
	if (n && atomic_load(&n->draining))
		buf_adds(&c->out, "stopping\n");
	else if (s.write_error)
		buf_addf(&c->out, "writes fail: %s\n", s.write_error_text);
	else if (token_needed(c->api->store) < 0)
		buf_adds(&c->out, "the store cannot be read\n");
	c->status = c->out.len ? 503 : 200;
	if (!c->out.len)
		buf_adds(&c->out, "ready\n");
	return CALL_DONE;
}

/* MLflow's clients read the version of the API here. */
enum call_next on_version_text_get(struct call *c)
{
	if (!call_args_done(c))
		return CALL_DONE;
	c->type = "text/plain; charset=utf-8";
	buf_adds(&c->out, "3.17.2");
	return CALL_DONE;
}

enum call_next on_version_get(struct call *c)
{
	struct js j = { .out = &c->out };
	struct store_stats s;

	if (!call_args_done(c))
		return CALL_DONE;
	store_stats(c->api->store, &s);
	js_open(&j, '{');
	js_key_str(&j, "dptrack", PACKAGE_VERSION);
	js_key_str(&j, "api", "v1");
	js_key_str(&j, "mlflow", "3.17.2");
	js_key_str(&j, "sqlite", s.sqlite_version);
	js_key_str(&j, "store", store_id(c->api->store));
	return js_reply(c, &j);
}

enum call_next on_openapi_get(struct call *c)
{
	const struct asset *a = asset_find("/api/v1/openapi.json");

	if (!call_args_done(c))
		return CALL_DONE;
	if (!a)
		return call_fail(c, CALL_not_found, NULL, "openapi.json is not built in");
	c->fixed.bytes = a->raw.bytes;
	c->fixed.len = a->raw.n;
	c->reply.etag = a->etag;
	return CALL_DONE;
}

static void write_prometheus_metric(struct buf *out, const char *name, const char *type, const char *help, double value)
{
	char text[JS_DOUBLE_MAX];

	js_print_double(text, value);
	buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s %s\n", name, help, name, type, name, text);
}

static double read_resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size = 0, resident = 0;

	if (f) {
		if (fscanf(f, "%ld %ld", &size, &resident) != 2)
			resident = 0;
		fclose(f);
	}
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void write_http_metrics(struct buf *out, struct api_counters *n)
{
	int i;

	write_prometheus_metric(out, "dptrack_http_requests_total", "counter", "Requests begun.", (double)n->requests);
	write_prometheus_metric(out, "dptrack_http_body_bytes_total", "counter", "Bytes of request bodies.",
				(double)n->body_bytes);
	write_prometheus_metric(out, "dptrack_http_connections", "gauge", "Open connections.", (double)n->connections);
	write_prometheus_metric(out, "dptrack_http_confined", "gauge",
				"1 if Landlock confines the request threads to the store.", n->confined ? 1 : 0);
	write_prometheus_metric(out, "dptrack_journal_interval_seconds", "gauge",
				"Interval that senders of journals are asked to keep between two requests.",
				journal_pace_interval_s(&n->pace));
	write_prometheus_metric(out, "dptrack_http_event_streams", "gauge", "Open event streams.", (double)n->streams);
	buf_adds(out, "# HELP dptrack_http_replies_total Replies by class of status.\n"
		      "# TYPE dptrack_http_replies_total counter\n");
	for (i = 2; i < 6; i++)
		buf_addf(out, "dptrack_http_replies_total{class=\"%dxx\"} %llu\n", i,
			 (unsigned long long)n->by_class[i]);
}

static void write_store_metrics(struct buf *out, const struct store_stats *s)
{
	write_prometheus_metric(out, "dptrack_store_commits_total", "counter", "Commits since start.",
				(double)s->commits);
	write_prometheus_metric(out, "dptrack_store_points_total", "counter", "Points stored since start.",
				(double)s->points);
	write_prometheus_metric(out, "dptrack_store_unfolded_points", "gauge",
				"Points that are stored but not folded yet.", (double)s->log_points);
	write_prometheus_metric(out, "dptrack_store_bytes", "gauge", "Bytes of the store's file.", (double)s->db_bytes);
	write_prometheus_metric(out, "dptrack_store_wal_bytes", "gauge", "Bytes of the write-ahead log.",
				(double)s->wal_bytes);
	write_prometheus_metric(out, "dptrack_store_sqlite_memory_bytes", "gauge",
				"Memory of SQLite: connections and their page caches.", (double)s->sqlite_bytes);
	write_prometheus_metric(
		out, "dptrack_store_outline_memory_bytes", "gauge",
		"Memory of cached chart outlines; at most 48 MB, with PostgreSQL half of --cache-mib more.",
		(double)s->outline_bytes);
	write_prometheus_metric(out, "dptrack_store_records_bad_total", "counter",
				"Journal records that are stored but not applied.", (double)s->records_bad);
	write_prometheus_metric(out, "dptrack_store_write_error", "gauge", "1 while the last commit failed.",
				s->write_error ? 1 : 0);
}

static void write_archive_metrics(struct buf *out, const struct store_stats *s)
{
	write_prometheus_metric(out, "dptrack_archive_runs_total", "counter",
				"Ended runs whose points this process moved to the object store since start.",
				(double)s->archived_runs);
	write_prometheus_metric(out, "dptrack_archive_series_total", "counter", "Their series.",
				(double)s->archived_series);
	write_prometheus_metric(out, "dptrack_archive_points_total", "counter", "Their points.",
				(double)s->archived_points);
	write_prometheus_metric(out, "dptrack_archive_bytes_total", "counter", "Bytes of their objects.",
				(double)s->archived_bytes);
	write_prometheus_metric(out, "dptrack_archive_returns_total", "counter",
				"Archived runs that got new points and were moved back into the database.",
				(double)s->archive_returns);
	write_prometheus_metric(out, "dptrack_archive_failures_total", "counter",
				"Moves to the object store or back that failed.", (double)s->archive_failures);
	write_prometheus_metric(out, "dptrack_archive_last_timestamp_seconds", "gauge",
				"Time of the last move to the object store; 0: none.",
				(double)s->archived_last_ms / 1e3);
}

enum call_next on_metrics_text_get(struct call *c)
{
	struct follow_stats f;
	struct store_stats s;

	if (!call_args_done(c))
		return CALL_DONE;
	c->type = "text/plain; version=0.0.4; charset=utf-8";
	c->reply.cache = "no-store";
	buf_addf(&c->out, "# HELP dptrack_build_info Version.\n# TYPE dptrack_build_info gauge\n"
			  "dptrack_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
	write_prometheus_metric(&c->out, "process_start_time_seconds", "gauge", "Start of the process.",
				c->api->started_s);
	write_prometheus_metric(&c->out, "process_resident_memory_bytes", "gauge", "Resident memory.",
				read_resident_bytes());
	if (c->api->counters)
		write_http_metrics(&c->out, c->api->counters);
	store_stats(c->api->store, &s);
	write_store_metrics(&c->out, &s);
	if (s.archives)
		write_archive_metrics(&c->out, &s);
	if (c->api->follow) {
		follow_stats(c->api->follow, &f);
		write_prometheus_metric(&c->out, "dptrack_follow_files", "gauge", "Files followed.", (double)f.files);
		write_prometheus_metric(&c->out, "dptrack_follow_bytes_total", "counter", "Bytes read from them.",
					(double)f.bytes_read);
	}
	return CALL_DONE;
}

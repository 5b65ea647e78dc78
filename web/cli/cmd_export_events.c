/* cmd_export_events.c: fetches the event files of a run one by one and stores them in its folder. */
#include "web/cli/cmd_export_events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "web/cli/cli.h"

struct event_exporter {
	struct source *source;
	const char *id;
	char dir[3000]; /* folder of the run */
	long long start_s;
};

struct event_file {
	const char *path;
	FILE *to;
};

static int fail_event_write(struct err *err, const char *path)
{
	return err_set_errno(err, errno, "cannot write %s", path);
}

static int write_event_bytes(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct event_file *f = arg;

	return fwrite(bytes, 1, n, f->to) == n ? 0 : fail_event_write(err, f->path);
}

static int fetch_event_file(struct event_exporter *w, const char *target, const char *path, struct err *err)
{
	struct event_file f = { path, fopen(path, "wbe") };
	int rc;

	if (!f.to)
		return fail_event_write(err, path);
	rc = source_send(w->source, &(struct local_opts){ .method = "GET", .target = target },
			 &(struct local_sink){ write_event_bytes, &f }, err);
	if (!rc && (fflush(f.to) || fsync(fileno(f.to))))
		rc = fail_event_write(err, path);
	if (fclose(f.to) && !rc)
		rc = fail_event_write(err, path);
	return rc;
}

/* Writes the file of one rank's series (-1: of the run itself) in one segment. */
static int write_event_part(struct event_exporter *w, int rank, int segment, struct err *err)
{
	char path[4096], whole[4096], target[256], folder[32] = "";
	int rc;

	if (rank >= 0)
		snprintf(folder, sizeof(folder), "rank-%d/", rank);
	snprintf(whole, sizeof(whole), "%s/%sevents.out.tfevents.%010lld.dptrack.%06d", w->dir, folder, w->start_s,
		 segment);
	snprintf(path, sizeof(path), "%s/%s.part-%06d", w->dir, folder, segment);
	snprintf(target, sizeof(target), "/api/v1/export/series.tfevents?run=%s&rank=%d&segment=%d", w->id, rank,
		 segment);
	rc = file_make_parents(path, 0777, err);
	if (!rc)
		rc = fetch_event_file(w, target, path, err);
	if (!rc && rename(path, whole))
		rc = fail_event_write(err, whole);
	if (rc)
		unlink(path);
	return rc;
}

/* Writes all files. The file of the run itself is written even when only ranks have points: it contains params and
 * notes. */
static int write_event_parts(struct event_exporter *w, json_t *parts, struct err *err)
{
	bool own = false;
	json_t *part;
	size_t i;
	int rc = 0;

	json_array_foreach(parts, i, part) {
		int rank = (int)json_integer_value(json_object_get(part, "rank"));
		int segment = (int)json_integer_value(json_object_get(part, "segment"));

		own = own || (rank < 0 && !segment);
		if (!rc)
			rc = write_event_part(w, rank, segment, err);
	}
	return rc || own ? rc : write_event_part(w, -1, 0, err);
}

/* Sets the folder of a run's files. */
static int set_export_folder(struct event_exporter *w, json_t *run, const char *dir, struct err *err)
{
	char experiment[FILE_NAME_BYTES], name[FILE_NAME_BYTES];

	file_name_of(experiment, cli_text(run, "experiment"));
	file_name_of(name, cli_text(run, "name"));
	if ((size_t)snprintf(w->dir, sizeof(w->dir), "%s/%s/%s-%.8s", dir, experiment, name, w->id) >= sizeof(w->dir))
		return err_set(err, ERR_USAGE, "--events %.100s…: the path is too long", dir);
	return 0;
}

int export_events(struct source *s, const char *dir, const char *id, struct err *err)
{
	struct event_exporter w = { .source = s, .id = id };
	json_t *run = NULL, *root = NULL;
	char target[128];
	int rc;

	snprintf(target, sizeof(target), "/api/v1/runs/%s", id);
	rc = cli_get_json(s, target, &run, err);
	if (!rc) {
		w.start_s = (long long)(json_number_value(json_object_get(run, "start_time")) / 1e3);
		snprintf(target, sizeof(target), "/api/v1/export/parts.json?run=%s", id);
		rc = cli_get_json(s, target, &root, err);
	}
	if (!rc)
		rc = set_export_folder(&w, run, dir, err);
	if (!rc)
		rc = write_event_parts(&w, json_object_get(root, "parts"), err);
	json_decref(run);
	json_decref(root);
	return rc;
}

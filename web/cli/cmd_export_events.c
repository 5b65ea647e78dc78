/* cmd_export_events.c: asks for a run's event files, one after the other, and gives them their places. */
#include "web/cli/cmd_export_events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/file_name.h"
#include "web/cli/cli.h"

struct writer {
	struct source *source;
	const char *id;
	char dir[3000]; /* of the run */
	long long start_s;
};

struct file {
	const char *path;
	FILE *to;
};

static int failed(struct err *err, const char *path)
{
	return err_set_errno(err, errno, "cannot write %s", path);
}

static int take(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct file *f = arg;

	return fwrite(bytes, 1, n, f->to) == n ? 0 : failed(err, f->path);
}

static int fetch(struct writer *w, const char *target, const char *path, struct err *err)
{
	struct file f = { path, fopen(path, "wbe") };
	int rc;

	if (!f.to)
		return failed(err, path);
	rc = source_send(w->source, &(struct local_opts){ .method = "GET", .target = target },
			 &(struct local_sink){ take, &f }, err);
	if (!rc && (fflush(f.to) || fsync(fileno(f.to))))
		rc = failed(err, path);
	if (fclose(f.to) && !rc)
		rc = failed(err, path);
	return rc;
}

/* The file of one rank's series (-1: the run's own) in one segment. */
static int write_part(struct writer *w, int rank, int segment, struct err *err)
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
	rc = file_name_folders(path, err);
	if (!rc)
		rc = fetch(w, target, path, err);
	if (!rc && rename(path, whole))
		rc = failed(err, whole);
	if (rc)
		unlink(path);
	return rc;
}

/* The run's own file is there even where nothing but ranks has points: it holds params and notes. */
static int write_parts(struct writer *w, json_t *parts, struct err *err)
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
			rc = write_part(w, rank, segment, err);
	}
	return rc || own ? rc : write_part(w, -1, 0, err);
}

/* Where a run's files go. */
static int place(struct writer *w, json_t *run, const char *dir, struct err *err)
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
	struct writer w = { .source = s, .id = id };
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
		rc = place(&w, run, dir, err);
	if (!rc)
		rc = write_parts(&w, json_object_get(root, "parts"), err);
	json_decref(run);
	json_decref(root);
	return rc;
}

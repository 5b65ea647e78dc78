/* SPDX-License-Identifier: Apache-2.0 */
/* state_json.c: state.json. Doubles read back bit for bit. The last line is the checksum of everything before that
 * line. */
#include "trainer/weights/checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"

#define FORMAT "dptrain checkpoint"
#define VERSION 1
#define SEAL ",\n \"crc32c\": %" PRIu32 "\n}" /* in place of the last "\n}" */

static json_t *real_json(double v)
{
	char text[40];

	if (isfinite(v))
		return json_real(v);
	snprintf(text, sizeof(text), "%g", v);
	return json_string(text);
}

static bool read_real(const json_t *v, double *ret)
{
	const char *text = json_string_value(v);
	char *end;

	if (!text && !json_is_number(v))
		return false;
	if (!text) {
		*ret = json_number_value(v);
		return true;
	}
	*ret = strtod(text, &end);
	return *text && !*end;
}

static json_t *texts_json(const struct st_meta *list, size_t n)
{
	json_t *o = json_object();

	for (size_t i = 0; o && i < n; i++)
		if (json_object_set_new(o, list[i].key, json_string(list[i].value))) {
			json_decref(o);
			return NULL;
		}
	return o;
}

static json_t *values_json(const struct checkpoint_state *s)
{
	json_t *o = json_object();

	for (int i = 0; o && i < CHECKPOINT_VALUES && s->value[i].name[0]; i++)
		if (json_object_set_new(o, s->value[i].name, real_json(s->value[i].value))) {
			json_decref(o);
			return NULL;
		}
	return o;
}

static json_t *file_json(const char *name, const struct st_sum *sum)
{
	return json_pack("{s:s, s:I, s:I}", "name", name, "bytes", (json_int_t)sum->bytes, "crc32c",
			 (json_int_t)sum->crc32c);
}

static json_t *best_json(const struct checkpoint_state *s)
{
	return s->has_best ? json_pack("{s:o, s:I}", "value", real_json(s->best), "step", (json_int_t)s->best_step)
			   : json_null();
}

/* Takes ownership of text; NULL: out of memory. */
static char *append_checksum(char *text)
{
	size_t n = text ? strlen(text) : 0, room = n + sizeof(SEAL) + 10;
	char *sealed = text ? mem_realloc(text, room) : NULL;

	if (!sealed) {
		free(text);
		return NULL;
	}
	n -= strlen("\n}");
	snprintf(sealed + n, room - n, SEAL, crc32c(0, sealed, n));
	return sealed;
}

/* The first format had no checksum: accept it. */
static bool checksum_matches(const json_t *root, const char *text, size_t n)
{
	const json_t *v = json_object_get(root, "crc32c");
	uint32_t crc = (uint32_t)json_integer_value(v);
	char end[sizeof(SEAL) + 10];
	size_t k = (size_t)snprintf(end, sizeof(end), SEAL, crc);

	return !v || (n > k && !memcmp(text + n - k, end, k) && crc32c(0, text, n - k) == crc);
}

char *state_text(const struct checkpoint_write_opts *o, const struct st_sum sum[STATE_FILES])
{
	const struct checkpoint_state *s = o->state;
	json_t *root = json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:{s:b, s:o, s:I, s:o}, s:b, s:o, s:o, "
		"s:o, "
		"s:o, s:[o, o]}",
		"format", FORMAT, "version", VERSION, "run_id", s->run_id, "model", s->model, "data_hash", s->data_hash,
		"segment", s->segment, "world_size", s->world, "global_batch", (json_int_t)s->global_batch, "seed",
		(json_int_t)s->seed, "step", (json_int_t)s->step, "epoch", (json_int_t)s->epoch, "batches_of_epoch",
		(json_int_t)s->in_epoch, "open_epoch", "is_open", (int)s->epoch_is_open, "loss_sum",
		real_json(s->loss_sum), "samples", (json_int_t)s->samples, "seconds", real_json(s->seconds),
		"evaluation_is_open", (int)s->evaluation_is_open, "best", best_json(s), "values", values_json(s),
		"config", texts_json(o->config, o->n_config), "kernels", texts_json(o->kernels, o->n_kernels), "files",
		file_json(o->gpt && o->gpt->lora ? CHECKPOINT_ADAPTER : CHECKPOINT_MODEL, &sum[STATE_MODEL]),
		file_json(CHECKPOINT_OPTIMIZER, &sum[STATE_OPTIMIZER]));
	char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;

	json_decref(root);
	return append_checksum(text);
}

static int report_damage(const char *path, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.300s: is damaged: %s", path, what);
}

static bool copy_text_member(const json_t *root, const char *key, char *to, size_t n)
{
	const char *text = json_string_value(json_object_get(root, key));

	return text && (size_t)snprintf(to, n, "%s", text) < n;
}

static bool read_integer_member(const json_t *root, const char *key, int64_t least, int64_t *ret)
{
	const json_t *v = json_object_get(root, key);

	*ret = json_integer_value(v);
	return json_is_integer(v) && *ret >= least;
}

static bool read_value_list(const json_t *list, struct checkpoint_state *s)
{
	const char *name;
	json_t *v;
	int n = 0;

	json_object_foreach((json_t *)list, name, v) {
		if (n == CHECKPOINT_VALUES || strlen(name) >= sizeof(s->value[n].name) ||
		    !read_real(v, &s->value[n].value))
			return false;
		snprintf(s->value[n].name, sizeof(s->value[n].name), "%s", name);
		n++;
	}
	return json_is_object(list);
}

static bool read_best(const json_t *v, struct checkpoint_state *s)
{
	s->has_best = json_is_object(v);
	return json_is_null(v) ||
	       (read_real(json_object_get(v, "value"), &s->best) && read_integer_member(v, "step", 0, &s->best_step));
}

static bool read_epoch(const json_t *v, struct checkpoint_state *s)
{
	s->epoch_is_open = json_is_true(json_object_get(v, "is_open"));
	return read_real(json_object_get(v, "loss_sum"), &s->loss_sum) &&
	       read_integer_member(v, "samples", 0, &s->samples) &&
	       read_real(json_object_get(v, "seconds"), &s->seconds);
}

static bool read_file_entry(const json_t *v, const char *name, struct st_sum *sum)
{
	const char *named = json_string_value(json_object_get(v, "name"));
	int64_t bytes, crc;

	if (!named || strcmp(named, name) || !read_integer_member(v, "bytes", 8, &bytes) ||
	    !read_integer_member(v, "crc32c", 0, &crc) || crc > UINT32_MAX)
		return false;
	*sum = (struct st_sum){ .bytes = (uint64_t)bytes, .crc32c = (uint32_t)crc };
	return true;
}

/* Returns what is wrong, or NULL. */
static const char *read_state_members(const json_t *root, struct state_file *f)
{
	struct checkpoint_state *s = &f->state;
	const json_t *files = json_object_get(root, "files");
	int64_t segment, world, seed;

	if (!copy_text_member(root, "run_id", s->run_id, sizeof(s->run_id)) || strlen(s->run_id) != 32)
		return "run_id is missing";
	if (!copy_text_member(root, "model", s->model, sizeof(s->model)) ||
	    !copy_text_member(root, "data_hash", s->data_hash, sizeof(s->data_hash)))
		return "model or data_hash is missing";
	if (!read_integer_member(root, "segment", 0, &segment) || segment > INT32_MAX ||
	    !read_integer_member(root, "world_size", 1, &world) || world > INT32_MAX ||
	    !read_integer_member(root, "global_batch", 1, &s->global_batch) ||
	    !read_integer_member(root, "seed", 0, &seed))
		return "segment, world_size, global_batch or seed is missing or out of range";
	if (!read_integer_member(root, "step", 0, &s->step) || !read_integer_member(root, "epoch", 0, &s->epoch) ||
	    !read_integer_member(root, "batches_of_epoch", 0, &s->in_epoch) || s->step == INT64_MAX ||
	    s->epoch == INT64_MAX)
		return "step, epoch or batches_of_epoch is missing or out of range";
	if (!read_epoch(json_object_get(root, "open_epoch"), s))
		return "open_epoch is malformed";
	s->evaluation_is_open = json_is_true(json_object_get(root, "evaluation_is_open"));
	if (!read_best(json_object_get(root, "best"), s))
		return "best is malformed";
	if (!read_value_list(json_object_get(root, "values"), s))
		return "values is malformed";
	f->adapter = read_file_entry(json_array_get(files, 0), CHECKPOINT_ADAPTER, &f->sum[STATE_MODEL]);
	if ((!f->adapter && !read_file_entry(json_array_get(files, 0), CHECKPOINT_MODEL, &f->sum[STATE_MODEL])) ||
	    !read_file_entry(json_array_get(files, 1), CHECKPOINT_OPTIMIZER, &f->sum[STATE_OPTIMIZER]))
		return "files is malformed";
	s->segment = (int)segment;
	s->world = (int)world;
	s->seed = (uint64_t)seed;
	return NULL;
}

int state_parse(struct state_file *ret, const char *path, const char *text, size_t n, struct err *err)
{
	struct state_file f = { .config = NULL };
	json_error_t je;
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &je);
	const char *format = json_string_value(json_object_get(root, "format")), *why;
	json_int_t version = json_integer_value(json_object_get(root, "version"));
	int rc = 0;

	if (!root)
		rc = report_damage(path, "it is not JSON", err);
	else if (!format || strcmp(format, FORMAT))
		rc = err_set(err, ERR_USAGE, "%.300s: is not a checkpoint of dptrain", path);
	else if (version != VERSION)
		rc = err_set(err, ERR_USAGE, "%.300s: has format version %lld; this dptrain reads version %d", path,
			     (long long)version, VERSION);
	else if (!checksum_matches(root, text, n))
		rc = report_damage(path, "its checksum is wrong", err);
	else if ((why = read_state_members(root, &f)) || !json_is_object(json_object_get(root, "config")))
		rc = report_damage(path, why ? why : "config is missing", err);
	if (!rc) {
		f.config = json_incref(json_object_get(root, "config"));
		f.kernels = json_incref(json_object_get(root, "kernels"));
		*ret = f;
	}
	json_decref(root);
	return rc;
}

void state_done(struct state_file *s)
{
	json_decref(s->config);
	json_decref(s->kernels);
	s->config = s->kernels = NULL;
}

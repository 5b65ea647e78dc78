/* initial.c: --init-from, --reset-head, --freeze. */
#include "trainer/state/initial.h"

#include <fnmatch.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/arena.h"
#include "trainer/weights/checkpoint.h"
#include "trainer/weights/weights.h"

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Path of the newest checkpoint's weights below a run's folder; NULL: none. */
static const char *newest_weights(struct run_config *cfg)
{
	char *folder = arena_printf(cfg->arena, "%s/checkpoints", cfg->init_from), path[4200];
	struct checkpoint_entry *list = NULL;
	const char *found = NULL;
	size_t n = 0;

	if (!folder || checkpoint_list(&list, &n, folder, NULL))
		return NULL;
	for (size_t i = 0; !found && i < n; i++)
		if (list[i].segment >= 0 && !checkpoint_path(path, sizeof(path), folder, list[i].step, NULL))
			found = arena_printf(cfg->arena, "%s/" CHECKPOINT_MODEL, path);
	free(list);
	return found;
}

int initial_locate(struct run_config *cfg, struct err *err)
{
	static const char *const names[] = { "weights.safetensors", CHECKPOINT_MODEL };
	const char *found = NULL;
	struct stat st;

	if (!cfg->init_from)
		return 0;
	if (stat(cfg->init_from, &st))
		return err_set(err, ERR_USAGE, "--init-from %.300s: %s", cfg->init_from, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return 0;
	for (size_t i = 0; !found && i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = arena_printf(cfg->arena, "%s/%s", cfg->init_from, names[i]);

		if (!path)
			return err_set(err, ERR_NOMEM, "out of memory: --init-from");
		found = is_file(path) ? path : NULL;
	}
	if (!found)
		found = newest_weights(cfg);
	if (!found)
		return err_set(err, ERR_USAGE, "--init-from %.300s: no weights.safetensors, model.safetensors or checkpoint "
			       "in that folder", cfg->init_from);
	cfg->init_from = found;
	return 0;
}

/* What a file's metadata may settle, by the name of the flag. */
static const enum flag_id told[] = { FLAG_model,  FLAG_act,	   FLAG_n_layer,    FLAG_n_head,
				     FLAG_n_embd, FLAG_block_size, FLAG_vocab_size, FLAG_tie_weights };

struct telling {
	const struct safetensors *file;
	struct run_config *cfg;
	const char *path;
	struct err *err;
	int rc;
};

static void take_item(void *user, const struct config_item *item)
{
	struct telling *t = user;
	const char *value = safetensors_meta(t->file, item->id == FLAG_n_head ? "heads" : item->name);
	bool is_told = false;
	char label[400];

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		is_told |= told[i] == item->id;
	if (t->rc || !is_told || !value || config_given(t->cfg, item->id))
		return;
	snprintf(label, sizeof(label), "%.300s: %s", t->path, item->name);
	t->rc = config_put(t->cfg, item->id, label, value, t->err);
}

int initial_settle(struct run_config *cfg, struct err *err)
{
	struct telling t = { .cfg = cfg, .err = err };
	struct safetensors *s;
	int rc = initial_locate(cfg, err);

	if (rc || !cfg->init_from)
		return rc;
	t.path = cfg->init_from;
	rc = safetensors_open(&s, cfg->init_from, err);
	if (rc)
		return rc;
	t.file = s;
	rc = config_each(cfg, take_item, &t);
	if (!rc)
		rc = t.rc;
	if (!rc && !config_given(cfg, FLAG_model) && !safetensors_meta(s, "model"))
		rc = err_set(err, ERR_USAGE, "%.300s does not say which model it is of; add --model NAME", cfg->init_from);
	safetensors_close(s);
	return rc;
}

/* "0.5,0.25": as many finite numbers as there are channels. */
static bool read_channels(const char *text, int n, double *ret)
{
	char *end;

	for (int i = 0; i < n; i++) {
		ret[i] = strtod(text, &end);
		if (end == text || !isfinite(ret[i]) || *end != (i + 1 < n ? ',' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}

static int read_given(const struct engine *e, enum flag_id id, const char *text, double *to, struct err *err)
{
	double v[DATASET_CHANNELS_MAX];
	char label[300];
	bool fine = read_channels(text, e->data->channels, v);

	for (int i = 0; fine && id == FLAG_std && i < e->data->channels; i++)
		fine = v[i] > 0;
	if (!fine)
		return err_set(err, ERR_USAGE, "%s '%.100s': must be %d %snumber%s with commas between, one for each channel of %.200s",
			       config_label(e->cfg, id, label, sizeof(label)), text, e->data->channels,
			       id == FLAG_std ? "positive " : "", e->data->channels > 1 ? "s" : "", e->data->path);
	memcpy(to, v, (size_t)e->data->channels * sizeof(*to));
	return 0;
}

int initial_given(struct engine *e, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	int rc = 0;

	if (!cfg->mean && !cfg->std)
		return 0;
	if (e->data->kind != SAMPLE_IMAGE || e->data->dtype != DTYPE_U8)
		return err_set(err, ERR_USAGE, "--mean, --std: %.200s is used as it is and not normalised", e->data->path);
	if (cfg->mean)
		rc = read_given(e, FLAG_mean, cfg->mean, e->norm.mean, err);
	if (!rc && cfg->std)
		rc = read_given(e, FLAG_std, cfg->std, e->norm.std, err);
	return rc;
}

int initial_normalize(struct engine *e, const char *path, struct err *err)
{
	const struct dataset *d = e->data;
	struct dataset_norm norm = e->norm;
	const char *m, *v;
	struct safetensors *s;
	int rc;

	if (e->cfg->mean || e->cfg->std)
		return 0;
	rc = safetensors_open(&s, path, err);
	if (rc)
		return rc;
	m = safetensors_meta(s, "mean");
	v = safetensors_meta(s, "std");
	if (m && v && d->kind == SAMPLE_IMAGE && d->dtype == DTYPE_U8) {
		bool fine = read_channels(m, d->channels, norm.mean) && read_channels(v, d->channels, norm.std);

		for (int i = 0; fine && i < d->channels; i++)
			fine = norm.std[i] > 0;
		if (fine) {
			e->norm = norm;
		} else {
			rc = err_set(err, ERR_USAGE,
				     "%.300s: its mean and std are not %d numbers each, one for each channel of %.100s", path,
				     d->channels, d->path);
		}
	}
	safetensors_close(s);
	return rc;
}

static bool is_subject(const struct tensor *t)
{
	return t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT;
}

bool initial_gives(const struct engine *e, const struct tensor *t)
{
	const char *anew = e->cfg->reset_head ? e->model->head : NULL;

	return e->cfg->init_from && is_subject(t) && !(anew && !strncmp(t->name, anew, strlen(anew)));
}

int initial_load(struct engine *e, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	const char *head = e->model->head;
	struct weights_load_opts o = { .path = cfg->init_from, .head = head, .skip = cfg->reset_head ? head : NULL };
	int rc;

	if (cfg->reset_head && !head)
		return err_set(err, ERR_USAGE, "--reset-head: %s has no classifier of its own", e->model->name);
	rc = weights_load(e->prepared.program[0]->graph, &o, &(struct weights_access){ .put = files_put, .user = e }, err);
	return rc ? rc : initial_normalize(e, cfg->init_from, err);
}

static bool names_some(const struct graph *g, const char *pattern)
{
	for (int i = 0; i < g->n_tensors; i++)
		if (is_subject(g->tensors[i]) && !fnmatch(pattern, g->tensors[i]->name, 0))
			return true;
	return false;
}

int initial_check_freeze(const struct engine *e, struct err *err)
{
	const struct graph *g = e->prepared.program[0]->graph;
	const char *at = e->cfg->freeze;
	bool trains = false;

	for (; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
		char one[256];

		snprintf(one, sizeof(one), "%.*s", (int)strcspn(at, ",") - (*at == '!'), at + (*at == '!'));
		if (!names_some(g, one))
			return err_set(err, ERR_USAGE, "--freeze %.100s: nothing in %s has such a name", one,
				       e->model->name);
	}
	for (int i = 0; i < g->n_tensors; i++)
		trains |= g->tensors[i]->kind == TENSOR_PARAM && !g->tensors[i]->frozen;
	if (!trains && !e->cfg->test_only)
		return err_set(err, ERR_USAGE, "--freeze %.200s: nothing is left to train", e->cfg->freeze);
	return 0;
}

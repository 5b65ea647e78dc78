/* initial.c: --init-from, --reset-head, --freeze. */
#include "trainer/engine/initial.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/weights/weights.h"

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
	struct telling t = { .cfg = cfg, .path = cfg->init_from, .err = err };
	struct safetensors *s;
	int rc;

	if (!cfg->init_from)
		return 0;
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

int initial_normalize(struct engine *e, const char *path, struct err *err)
{
	struct dataset *d = e->data;
	double mean[DATASET_CHANNELS_MAX], std[DATASET_CHANNELS_MAX];
	const char *m, *v;
	struct safetensors *s;
	int rc = safetensors_open(&s, path, err);

	if (rc)
		return rc;
	m = safetensors_meta(s, "mean");
	v = safetensors_meta(s, "std");
	if (m && v && d->kind == SAMPLE_IMAGE && d->dtype == DTYPE_U8) {
		bool fine = read_channels(m, d->channels, mean) && read_channels(v, d->channels, std);

		for (int i = 0; fine && i < d->channels; i++)
			fine = std[i] > 0;
		if (fine) {
			memcpy(d->mean, mean, sizeof(mean));
			memcpy(d->std, std, sizeof(std));
		} else {
			rc = err_set(err, ERR_USAGE,
				     "%.300s: its mean and std are not %d numbers each, as %.100s has channels", path,
				     d->channels, d->path);
		}
	}
	safetensors_close(s);
	return rc;
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

static bool is_subject(const struct tensor *t)
{
	return t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT;
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

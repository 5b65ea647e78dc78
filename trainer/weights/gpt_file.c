/* gpt_file.c: reads the sizes of a GPT from its weights file. */
#include "trainer/weights/gpt_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/weights/weight_layout.h"

#define LAYERS_MAX 100000

static bool has_layer(const struct safetensors *s, int64_t i)
{
	char name[80];

	snprintf(name, sizeof(name), "transformer.h.%lld.ln_1.weight", (long long)i);
	return layout_find(s, name) != NULL;
}

static void read_metadata(struct gpt_file *ret, const struct safetensors *s)
{
	const char *heads = safetensors_meta(s, "heads"), *tokenizer = safetensors_meta(s, "tokenizer");

	if (heads)
		ret->config.heads = strtoll(heads, NULL, 10);
	if (tokenizer)
		snprintf(ret->tokenizer, sizeof(ret->tokenizer), "%.70s", tokenizer);
}

int gpt_file_describe(struct gpt_file *ret, const char *path, struct err *err)
{
	struct gpt_file f = { .tokenizer = "" };
	const struct st_tensor *wte, *wpe;
	struct hf_config sibling; /* config.json next to the file */
	struct safetensors *s;
	int rc = safetensors_open(&s, path, err);

	if (rc)
		return rc;
	wte = layout_find(s, "transformer.wte.weight");
	wpe = layout_find(s, "transformer.wpe.weight");
	if (!wte || !wpe || wte->ndim != 2 || wpe->ndim != 2 || wte->dim[1] != wpe->dim[1] || !has_layer(s, 0)) {
		rc = err_set(err, ERR_USAGE, "%.300s: is not a GPT-2: expected wte.weight, wpe.weight and h.0…",
			     path);
		goto out;
	}
	f.config = (struct hf_config){ .vocab = wte->dim[0], .width = wte->dim[1], .context = wpe->dim[0] };
	while (f.config.layers < LAYERS_MAX && has_layer(s, f.config.layers))
		f.config.layers++;
	f.config.tied = !safetensors_find(s, "lm_head.weight") || layout_repeats_table(s);
	read_metadata(&f, s);
	if (!f.config.heads && hf_config_read(&sibling, path, NULL) == 1 && sibling.width == f.config.width)
		f.config.heads = sibling.heads;
	*ret = f;
out:
	safetensors_close(s);
	return rc;
}

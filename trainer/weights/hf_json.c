/* SPDX-License-Identifier: Apache-2.0 */
/* hf_json.c: loads a JSON file of Hugging Face's folders. */
#include "trainer/weights/hf_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/file.h"
#include "tracker/base/utf8.h"

json_t *hf_json_load(const char *path, json_error_t *ret)
{
	struct err why = ERR_INIT;
	struct buf text;
	json_t *root = NULL;
	size_t mark;

	buf_init(&text, CONFIG_BYTES_MAX);
	*ret = (json_error_t){ .line = 0 };
	if (file_load(&text, path, &why)) {
		snprintf(ret->text, sizeof(ret->text), "%.100s", strerror(errno));
	} else {
		mark = utf8_mark(text.data ? text.data : "", text.len);
		root = json_loadb(text.data ? text.data + mark : "", text.len - mark, 0, ret);
	}
	buf_done(&text);
	return root;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_tokenizer.h: a folder's tokenizer and chat template as keys of a GGUF file. Private to the export. */
#ifndef DPT_TOOLS_GGUF_TOKENIZER_H
#define DPT_TOOLS_GGUF_TOKENIZER_H

#include "trainer/data/chat/chat.h"
#include "trainer/weights/decoder_file.h"
#include "trainer/weights/gguf_write.h"

struct gguf_vocabulary {
	const char *folder;		 /* with tokenizer.json */
	int64_t rows;			 /* of the model's table: ids without a token become unused ones */
	const struct decoder_generation *generation; /* of the model */
	struct chat *chat;		 /* opened for the folder */
};

/* Adds the keys. ERR_USAGE: the tokenizer has more tokens than rows, or is of a kind that readers of GGUF have no name
 * for. */
int gguf_put_tokenizer(struct gguf_keys *k, const struct gguf_vocabulary *v, struct err *err);

#endif

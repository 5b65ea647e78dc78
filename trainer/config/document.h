/* SPDX-License-Identifier: Apache-2.0 */
/* document.h: reads a file of settings, in JSON or YAML, as one tree of JSON values. */
#ifndef DPT_CONFIG_DOCUMENT_H
#define DPT_CONFIG_DOCUMENT_H

#include <jansson.h>

#include "tracker/base/err.h"

#define DOCUMENT_BYTES_MAX (1u << 20)

/* Reads the file at path: *.yaml and *.yml as YAML, others as JSON; a byte order mark at the start is skipped. YAML is
 * read by its core schema: true and false are booleans, yes and no texts, numbers with leading zeros texts. Repeated
 * keys and aliases are refused. The caller owns *ret. ERR_USAGE with path and line; ERR_NOMEM. */
int document_read(json_t **ret, const char *path, struct err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* document_mark.h: how a token is marked that begins a document of a sample with several. */
#ifndef DPT_GRAPH_DOCUMENT_MARK_H
#define DPT_GRAPH_DOCUMENT_MARK_H

/* Marks a token, which is at least 0, or removes the mark: marked ones are below 0. */
#define DOCUMENT_MARK(token) (-1 - (token))

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* saved_view.h: saved views of the page and reports, by name in an experiment, each with its last editions. Texts are
 * opaque here. Changes go through ingest_submit. */
#ifndef DPT_STORE_SAVED_VIEW_H
#define DPT_STORE_SAVED_VIEW_H

#include "tracker/base/arena.h"
#include "web/store/write/ingest.h"

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/saved_view/changes.def"
#undef CHANGE

#define SAVED_VIEW_VIEW "view"
#define SAVED_VIEW_REPORT "report"

struct saved_view_op {
	const struct change_ops *kind;
	const char *shelf; /* SAVED_VIEW_VIEW or SAVED_VIEW_REPORT */
	int64_t id;
	const char *experiment;	 /* name; NULL or "": Default */
	const char *name, *text; /* NULL: unchanged */
	const char *seen; /* kept_change_edit: entity tags (etag.h) of what its author saw; NULL: whatever is there */
	const char *editing;	 /* a word that is the same for all texts of one edition; NULL: text is an edition */
	int64_t edition;	 /* kept_change_forget: removed; not the newest */
	int preferred;		 /* 1: the experiment opens with it, 0: not, -1: unchanged */
};

/* op for ingest_submit; borrows it. */
struct ingest_op saved_view_ingest(const struct saved_view_op *op);

struct saved_view_edition {
	int64_t number, written_ms;
};

struct saved_view {
	int64_t id;
	const char *experiment, *name;
	const char *text; /* "" for reports in a list */
	bool preferred;
	int64_t edition; /* edition of text */
	int64_t created_ms, updated_ms;
	struct saved_view_edition *editions; /* existing ones, oldest first; saved_view_get only */
	size_t edition_count;
};

struct saved_view_sel {
	const char *shelf;	/* SAVED_VIEW_VIEW or SAVED_VIEW_REPORT */
	const char *experiment; /* saved_view_list: NULL: all; saved_view_preferred: required */
	int64_t id, edition;	/* saved_view_get; edition 0: the newest */
};

struct saved_views {
	struct saved_view *items;
	size_t count;
};

/* All of a shelf by experiment and name, without those of deleted experiments. */
int saved_view_list(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_views *ret,
		    struct err *err);

/* What an experiment opens with. ERR_NOENT without a text: none. */
int saved_view_preferred(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_view *ret,
			 struct err *err);

/* A hash of all that saved_view_get returns, for its entity tag. */
uint64_t saved_view_hash(const struct saved_view *k);

/* ERR_NOENT without a text: no such item. */
int saved_view_get(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_view *ret,
		   struct err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* graphql.h: answers a GraphQL request: parses the selection (fragments, aliases, variables, @include, @skip) and fills
 * it from JSON values. Types are not validated, as clients of several ages ask with different ones. A fragment counts
 * whatever type it names. Knows no fields but those of the tables that it is given. One thread per call. */
#ifndef DPT_API_GRAPHQL_H
#define DPT_API_GRAPHQL_H

#include "web/api/api.h"

/* Bounds, checked before anything is answered; of the work, while it is. */
enum { GRAPHQL_TEXT_MAX = 256 << 10, GRAPHQL_DEPTH_MAX = 32, GRAPHQL_FIELDS_MAX = 2000, GRAPHQL_ROOTS_MAX = 50 };
enum { GRAPHQL_WORK_MAX = 3000, GRAPHQL_LIST_WORK = 150 }; /* a member is 1 */

/* A field of the selection. */
struct graphql_field {
	struct graphql_field *next;
	struct graphql_field *fields; /* what is selected inside; NULL: nothing */
	const char *key, *name;	      /* key: its alias, else the name */
	json_t *args;		      /* an object, borrowed for the call; variables are replaced by their values */
};

/* A root field. run ends with graphql_give, graphql_refuse or a failed call; it may wait for a change in between. */
struct graphql_root {
	const char *name;
	enum call_scope scope;
	enum call_next (*run)(struct call *c, const struct graphql_field *f);
};

/* A member that objects of a type (their member __typename) have when it is asked for. make returns a new reference;
 * NULL: null, or the call has failed. object is borrowed. */
struct graphql_member {
	const char *type, *name;
	json_t *(*make)(struct call *c, json_t *object, const struct graphql_field *f);
	bool list; /* reads a list, so that a request may have few of them */
};

struct graphql_schema {
	const struct graphql_root *roots;     /* a zeroed entry ends it */
	const struct graphql_member *members; /* as well */
};

/* Answers the body of the call. A root field that the token's scope does not allow fails the call before any runs. */
enum call_next graphql_run(struct call *c, const struct graphql_schema *schema);

/* The value of the root field that runs; takes the reference over (NULL: null). */
enum call_next graphql_give(struct call *c, json_t *value);

/* An error in place of the value: the client shows the text. */
enum call_next graphql_refuse(struct call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Private to the root field that runs, as call.own is to handlers. */
void **graphql_own(struct call *c);

/* Private to members, as a cache of what they read; empty when the next root field runs. */
void **graphql_cache(struct call *c);

/* True if the field selects a member of that name. */
bool graphql_asks(const struct graphql_field *f, const char *name);

/* Text of an argument, or of a member of its argument "input"; NULL: absent, null or no string. */
const char *graphql_text(const struct graphql_field *f, const char *name);
/* The argument, or the member of "input"; NULL: absent or null. */
json_t *graphql_arg(const struct graphql_field *f, const char *name);

/* An argument within [min, max]; fallback: absent or no integer. */
int64_t graphql_int(const struct graphql_field *f, const char *name, int64_t fallback, int64_t min, int64_t max);

/* A connection: {edges: [{node, cursor}], pageInfo, totalCount}. Takes the nodes over. more: a further page follows
 * after `end`. */
json_t *graphql_connection(json_t *nodes, const char *end, bool more, int64_t total);

#endif

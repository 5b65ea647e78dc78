/* mlflow.h: what the handlers of MLflow's routes share: its request reading (lenient, as protobuf's JSON is), its error
 * bodies, its rules for names. Handlers are named ml_*. */
#ifndef DPT_API_MLFLOW_H
#define DPT_API_MLFLOW_H

#include "web/api/api.h"

enum ml_code {
#define ML_ERROR(name, status) ML_##name,
#include "schema/api/mlflow_errors.def"
#undef ML_ERROR
};

#define ML_SEE_DOCS " See the API docs for more information about request parameters."

/* Fails the call; returns CALL_DONE. */
enum call_next ml_fail(struct call *c, enum ml_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Fails the call with what the store said. */
enum call_next ml_fail_err(struct call *c, const struct err *err);

struct ml_strings {
	const char **items;
	size_t count;
};

enum ml_kind { ML_STRING, ML_INT, ML_DOUBLE, ML_BOOL, ML_STRINGS, ML_LIST, ML_OBJECT };

/* A member of a request; into is const char **, int64_t *, double *, bool *, struct ml_strings * or json_t ** (borrowed
 * until the call ends). Numbers may come as text. */
struct ml_field {
	const char *name;
	enum ml_kind kind;
	bool required;
	void *into;
	bool *given; /* NULL: nobody asks */
};

/* The request as an object: the body, or a GET's arguments. NULL after failing the call. */
json_t *ml_request(struct call *c);

/* Reads members by table (ends with a zeroed entry); unknown ones are ignored. The second reads the index-th item of
 * the list `what`, which messages then name ("metrics[3].key"). False after failing the call. */
bool ml_read(struct call *c, json_t *object, const struct ml_field *fields);
bool ml_read_item(struct call *c, json_t *list, const char *what, size_t index, const struct ml_field *fields);

/* Both at once, of the whole request. */
bool ml_args(struct call *c, const struct ml_field *fields);

/* Submits the change; then replies. ml_empty: with {}. */
enum call_next ml_submit(struct call *c, const struct mlflow_op *op,
			 enum call_next (*then)(struct call *c, const struct ingest_result *res));
enum call_next ml_empty(struct call *c, const struct ingest_result *res);

/* {"tags"/"params": [{"key","value"}]} into the call's arena; values longer than max characters are cut. */
bool ml_pairs(struct call *c, json_t *list, const char *what, size_t value_max, struct ingest_kv **ret);

/* ACTIVE_ONLY, DELETED_ONLY, ALL, or their numbers; NULL: active. Negative after failing the call. */
enum ml_view { ML_VIEW_ACTIVE, ML_VIEW_DELETED, ML_VIEW_ALL };
int ml_view_type(struct call *c, json_t *value, const char *path);

/* --- rules for names; each fails the call and returns false ------------------------------------------------ */

bool ml_name_ok(struct call *c, const char *path, const char *name);
bool ml_item_name_ok(struct call *c, const char *what, size_t index, const char *member, const char *name);
bool ml_length_ok(struct call *c, const char *what, size_t max_chars, const char *text);
bool ml_run_id_ok(struct call *c, const char *id);
bool ml_experiment_id(struct call *c, const char *text, int64_t *ret);
bool ml_fail_value(struct call *c, const char *path, json_t *value, const char *hint); /* always false */

const char *ml_cut(struct call *c, const char *text, size_t max_chars); /* the text, or its beginning */

/* A random adjective-noun-number. */
const char *ml_random_name(struct call *c);

void ml_write_tag_list(struct js *j, const char *key, const struct query_kv *kv, size_t n);

/* A run by its id, deleted ones too; false after failing the call. */
bool ml_find_run(struct call *c, const char *id, struct query_run *ret);

/* {"run_id", …}; then the members info and data of a run; then inputs and outputs (false after failing the call). */
void ml_write_info(struct call *c, struct js *j, const struct query_run *run);
void ml_write_run(struct call *c, struct js *j, const struct query_run *run);
bool ml_write_links(struct call *c, struct js *j, const struct query_run *run);

int64_t ml_time_ms(double wall_s);

#endif

/* mlflow_errors.h: what the handlers of MLflow's routes share: its request reading (lenient, as protobuf's JSON is), its error
 * bodies, its rules for names. Handlers are named ml_*. */
#ifndef DPT_API_MLFLOW_ERRORS_H
#define DPT_API_MLFLOW_ERRORS_H

#include "web/api/api.h"
#include "web/store/mlflow/logged_models.h"
#include "web/store/registry/registered.h"
#include "web/store/registry/registry.h"

enum ml_code {
#define ML_ERROR(name, status) ML_##name,
#include "schema/api/mlflow_errors.def"
#undef ML_ERROR
};

#define ML_PROMPT_TAG "mlflow.prompt.is_prompt" /* what makes a registered model, or a version, a prompt */
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
bool ml_path_ok(struct call *c, const char *path, const char *name); /* leads nowhere else when taken for a file's */
bool ml_word_ok(const char *text); /* letters and digits of any script, _ and - */
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
int ml_lookup_run(struct call *c, const char *id, struct query_run *ret, struct err *err); /* 1, 0 none, negative */

/* {"run_id", …}; then the members info and data of a run; then inputs and outputs. */
const char *ml_run_location(struct call *c, const struct query_run *run); /* of its artifacts */
void ml_write_info(struct call *c, struct js *j, const struct query_run *run);
void ml_write_run(struct call *c, struct js *j, const struct query_run *run);
void ml_write_links(struct js *j, const struct run_links *l);

int64_t ml_time_ms(double wall_s);

/* --- the registry ------------------------------------------------------------------------------------------- */

/* As ml_submit. */
enum call_next ml_submit_registry(struct call *c, const struct registry_op *op,
				  enum call_next (*then)(struct call *c, const struct ingest_result *res));

/* Rules; each fails the call and returns false. path: the member's name. */
bool ml_model_name_ok(struct call *c, const char *path, const char *name);
bool ml_alias_ok(struct call *c, const char *alias);
bool ml_alias_free(struct call *c, const char *alias);
bool ml_version_number(struct call *c, const char *text, int64_t *ret);
bool ml_registry_tag_ok(struct call *c, const struct ingest_kv *tag);
bool ml_registry_tags(struct call *c, json_t *list, const struct ingest_kv **ret, size_t *ret_count);

/* The stage in its one spelling; NULL after failing the call. */
const char *ml_stage(struct call *c, const char *word);

/* The members filter, max_results (ret->limit unless given, at most `most`), order_by and page_token. */
bool ml_registry_page(struct call *c, int64_t most, struct registered_opts *ret);

void ml_write_version(struct call *c, struct js *j, const struct registered_version *v);
/* By the alias, or "latest"; 0 after failing the call. */
int64_t ml_find_alias(struct call *c, const struct registered_model *m, const char *alias);
bool ml_find_registered(struct call *c, const char *name, struct registered_model *ret);
enum call_next ml_reply_version(struct call *c, const char *name, int64_t version);

/* False after failing the call. */
bool ml_find_version(struct call *c, const char *name, int64_t version, struct registered_version *ret);

/* Where a new version comes from. */
struct ml_source {
	const char *uri, *run, *model; /* ids; "": not said */
	bool run_given, model_given, prompt;
	const char *location; /* filled: where the files lie */
};

/* Checks the source, follows it where it names another version, and fills in what that tells. False after failing the
 * call. */
bool ml_source_follow(struct call *c, struct ml_source *s);

/* An address must not make whoever reads it connect to a host that a client named. False after failing the call. */
bool ml_host_ok(struct call *c, const char *field, const char *uri);

/* The folder below the root of artifacts that a location stands for; NULL after failing the call. */
const char *ml_source_folder(struct call *c, const char *location);

/* A logged model by its id, and where its files lie; false after failing the call. */
bool ml_find_model(struct call *c, const char *id, struct model *ret);
const char *ml_model_location(struct call *c, const struct model *m);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_request.h: shared by the handlers of MLflow's routes: reading of requests (lenient, as protobuf's JSON
 * parser), error bodies, and rules for names. Their names begin with ml_. */
#ifndef DPT_API_MLFLOW_REQUEST_H
#define DPT_API_MLFLOW_REQUEST_H

#include "web/api/api.h"
#include "web/store/mlflow/logged_models.h"
#include "web/store/registry/registered.h"

enum ml_code {
#define ML_ERROR(name, status) ML_##name,
#include "schema/api/mlflow_errors.def"
#undef ML_ERROR
};

#define ML_PROMPT_TAG "mlflow.prompt.is_prompt" /* marks a registered model, or a version, as a prompt */
#define ML_SEE_DOCS " See the API docs for more information about request parameters."

/* Fails the call; returns CALL_DONE. */
enum call_next ml_fail(struct call *c, enum ml_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Fails the call with an error of the store. */
enum call_next ml_fail_err(struct call *c, const struct err *err);

struct ml_strings {
	const char **items;
	size_t count;
};

enum ml_kind { ML_STRING, ML_INT, ML_DOUBLE, ML_BOOL, ML_STRINGS, ML_LIST, ML_OBJECT };

/* A member of a request; into is const char **, int64_t *, double *, bool *, struct ml_strings * or json_t ** (borrowed
 * until the call ends). Numbers may be strings. */
struct ml_field {
	const char *name;
	enum ml_kind kind;
	bool required;
	void *into;
	bool *given; /* set when the member is present; may be NULL */
};

/* The request as an object: the body, or the arguments of a GET. NULL after failing the call. */
json_t *ml_request(struct call *c);

/* Reads members by table (a zeroed entry ends it); ignores unknown ones. The second function reads the index-th item of
 * the list `what`, which errors name ("metrics[3].key"). Both return false after failing the call. */
bool ml_read(struct call *c, json_t *object, const struct ml_field *fields);
bool ml_read_item(struct call *c, json_t *list, const char *what, size_t index, const struct ml_field *fields);

/* ml_request and ml_read together. */
bool ml_args(struct call *c, const struct ml_field *fields);

/* Submits the change, then replies. ml_empty replies with {}. */
enum call_next ml_submit(struct call *c, const struct mlflow_op *op,
			 enum call_next (*then)(struct call *c, const struct ingest_result *res));
enum call_next ml_empty(struct call *c, const struct ingest_result *res);

/* Reads the list `what` of {"key","value"} into the call's arena, without a check of the texts. keyed: each needs a
 * key. NULL after failing the call. */
struct ingest_kv *ml_any_pairs(struct call *c, json_t *list, const char *what, bool keyed, size_t *ret_count);

/* The same for tags and params of runs, whose keys are checked; cuts values to value_max characters. */
bool ml_pairs(struct call *c, json_t *list, const char *what, size_t value_max, struct ingest_kv **ret);

/* ACTIVE_ONLY, DELETED_ONLY, ALL, or their numbers; NULL: active. Negative after failing the call. */
enum ml_view { ML_VIEW_ACTIVE, ML_VIEW_DELETED, ML_VIEW_ALL };
int ml_view_type(struct call *c, json_t *value, const char *path);

/* --- rules for names; each fails the call and returns false ------------------------------------------------- */

bool ml_name_ok(struct call *c, const char *path, const char *name);

/* Requires a name that, as a file path, does not resolve to another name. */
bool ml_path_ok(struct call *c, const char *path, const char *name);

bool ml_word_ok(const char *text); /* letters and digits of any script, _ and - */
bool ml_item_name_ok(struct call *c, const char *what, size_t index, const char *member, const char *name);
bool ml_length_ok(struct call *c, const char *what, size_t max_chars, const char *text);
bool ml_run_id_ok(struct call *c, const char *id);
bool ml_experiment_id(struct call *c, const char *text, int64_t *ret);
bool ml_fail_value(struct call *c, const char *path, json_t *value, const char *hint); /* always false */

/* A copy without percent-encoding and "+", decoded until nothing changes, as MLflow does before it judges a path or a
 * URI. NULL: longer than ML_URI_BYTES, or still changed by the eighth round. */
#define ML_URI_BYTES 8192
char *ml_unquote(struct call *c, const char *text);

const char *ml_cut(struct call *c, const char *text, size_t max_chars); /* the text, or its first max_chars
									 * characters */

/* A random name: adjective-noun-number. */
const char *ml_random_name(struct call *c);

void ml_write_tag_list(struct js *j, const char *key, const struct query_kv *kv, size_t n);

/* Finds a run by its id, also a deleted one; false after failing the call. */
bool ml_find_run(struct call *c, const char *id, struct query_run *ret);
int ml_lookup_run(struct call *c, const char *id, struct query_run *ret, struct err *err); /* 1 found, 0 missing, or
											    * negative */

/* ml_write_info: {"run_id", …}; ml_write_run: the members info and data of a run; ml_write_links: inputs and
 * outputs. */
const char *ml_run_location(struct call *c, const struct query_run *run); /* URI of its artifacts */
void ml_write_info(struct call *c, struct js *j, const struct query_run *run);
void ml_write_run(struct call *c, struct js *j, const struct query_run *run);
void ml_write_links(struct js *j, const struct run_links *l);

int64_t ml_time_ms(double wall_s);

/* --- the registry ------------------------------------------------------------------------------------------- */

/* As ml_submit. */
enum call_next ml_submit_registry(struct call *c, const struct registry_op *op,
				  enum call_next (*then)(struct call *c, const struct ingest_result *res));

/* Rules; each fails the call and returns false. path: name of the member. */
bool ml_model_name_ok(struct call *c, const char *path, const char *name);
bool ml_version_number(struct call *c, const char *text, int64_t *ret);
bool ml_registry_tag_ok(struct call *c, const struct ingest_kv *tag);
bool ml_registry_tags(struct call *c, json_t *list, const struct ingest_kv **ret, size_t *ret_count);

/* Canonical spelling of a stage; NULL after failing the call. */
const char *ml_stage(struct call *c, const char *word);

/* Reads the members filter, max_results (default ret->limit, at most `most`), order_by and page_token. */
bool ml_registry_page(struct call *c, int64_t most, struct registered_opts *ret);

void ml_write_version(struct call *c, struct js *j, const struct registered_version *v);
/* The version of an alias, or of "latest"; 0 after failing the call. */
int64_t ml_find_alias(struct call *c, const struct registered_model *m, const char *alias);
bool ml_find_registered(struct call *c, const char *name, struct registered_model *ret);
enum call_next ml_reply_version(struct call *c, const char *name, int64_t version);

/* False after failing the call. */
bool ml_find_version(struct call *c, const char *name, int64_t version, struct registered_version *ret);

/* Origin of a new version. */
struct ml_source {
	const char *uri, *run, *model; /* ids; "": absent */
	bool run_given, model_given, prompt;
	const char *location; /* set by ml_source_follow: location of the files */
};

/* Checks the source, resolves a reference to another version, and sets run and location from it. Returns false after
 * failing the call. */
bool ml_source_follow(struct call *c, struct ml_source *s);

/* Refuses a URI that would make its reader connect to a host chosen by a client. Returns false after failing the
 * call. */
bool ml_host_ok(struct call *c, const char *field, const char *uri);

/* The folder of a location, relative to the root of artifacts; NULL after failing the call. */
const char *ml_source_folder(struct call *c, const char *location);

/* Finds a logged model by its id; false after failing the call. ml_model_location: URI of its files. */
bool ml_find_model(struct call *c, const char *id, struct model *ret);
const char *ml_model_location(struct call *c, const struct model *m);

#endif

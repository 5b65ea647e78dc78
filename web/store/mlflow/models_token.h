/* models_token.h: page tokens of searches for logged models. A token has the position of its page and the search as
 * MLflow prints it, so that an error can quote what was expected and found. Knows nothing of models. */
#ifndef WEB_STORE_MLFLOW_MODELS_TOKEN_H
#define WEB_STORE_MLFLOW_MODELS_TOKEN_H

#include "web/store/mlflow/logged_models.h"

/* In the arena; NULL when out of memory. */
const char *models_token_write(struct arena *a, const struct models_opts *o, size_t place);

/* *ret: the number of models before the page of o->page_token, 0 without one. ERR_USAGE in MLflow's words: not a
 * token, or of another search. */
int models_token_read(size_t *ret, const struct models_opts *o, struct err *err);

#endif

/* models_token.h: page tokens of a search over logged models. A token says how many models lie before its page and what
 * was asked for, in the words in which MLflow prints that, so that a refusal can say what was expected and what was
 * found. Knows nothing of models. */
#ifndef WEB_STORE_MLFLOW_MODELS_TOKEN_H
#define WEB_STORE_MLFLOW_MODELS_TOKEN_H

#include "web/store/mlflow/logged_models.h"

/* In the arena; NULL when out of memory. */
const char *models_token_write(struct arena *a, const struct models_opts *o, size_t place);

/* *ret: the models before the page that o->page_token asks for, 0 without one. ERR_USAGE, in MLflow's words, where it
 * is no token or one of another search. */
int models_token_read(size_t *ret, const struct models_opts *o, struct err *err);

#endif

/* mlflow_errors.c: error replies of MLflow's routes, and the submission of their changes. */
#include "web/api/mlflow/mlflow_errors.h"

static const struct {
	const char *name;
	int status;
} ml_codes[] = {
#define ML_ERROR(name, status) { #name, status },
#include "schema/api/mlflow_errors.def"
#undef ML_ERROR
};

enum call_next ml_fail(struct call *c, enum ml_code code, const char *fmt, ...)
{
	struct js j = { .out = &c->out };
	const char *text;
	struct buf b;
	va_list ap;

	buf_init(&b, 1 << 20);
	va_start(ap, fmt);
	buf_addvf(&b, fmt, ap);
	va_end(ap);
	text = b.data ? arena_strdup(c->arena, b.data) : "";
	buf_done(&b);
	c->status = ml_codes[code].status;
	c->type = "application/json";
	buf_reset(&c->out);
	js_open(&j, '{');
	js_key_str(&j, "error_code", ml_codes[code].name);
	js_key_str(&j, "message", text);
	js_close(&j, '}');
	return CALL_DONE;
}

enum call_next ml_fail_err(struct call *c, const struct err *err)
{
	static const struct {
		int err;
		enum ml_code code;
	} map[] = {
		{ ERR_USAGE, ML_INVALID_PARAMETER_VALUE }, { ERR_LIMIT, ML_INVALID_PARAMETER_VALUE },
		{ ERR_NOENT, ML_RESOURCE_DOES_NOT_EXIST }, { ERR_GONE, ML_RESOURCE_DOES_NOT_EXIST },
		{ ERR_EXISTS, ML_RESOURCE_ALREADY_EXISTS },
		{ ERR_UNSUPPORTED, ML_INVALID_STATE },	   { ERR_NOSPC, ML_TEMPORARILY_UNAVAILABLE },
		{ ERR_NOMEM, ML_TEMPORARILY_UNAVAILABLE }, { ERR_BUSY, ML_TEMPORARILY_UNAVAILABLE },
		{ ERR_CANCELED, ML_TEMPORARILY_UNAVAILABLE }, { ERR_IO, ML_TEMPORARILY_UNAVAILABLE },
	};
	enum ml_code code = ML_INTERNAL_ERROR;
	size_t i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].err == err->code)
			code = map[i].code;
	if (code == ML_TEMPORARILY_UNAVAILABLE)
		c->retry_after_s = err->code == ERR_NOSPC || err->code == ERR_IO ? 10 : 1;
	return ml_fail(c, code, "%s", err->text);
}

enum call_next ml_submit(struct call *c, const struct mlflow_op *op,
			 enum call_next (*then)(struct call *c, const struct ingest_result *res))
{
	const struct ingest_op change = mlflow_op(op);

	return api_submit(c, &(struct api_change){ .op = &change, .fail = ml_fail_err, .then = then });
}

enum call_next ml_submit_registry(struct call *c, const struct registry_op *op,
				  enum call_next (*then)(struct call *c, const struct ingest_result *res))
{
	const struct ingest_op change = registry_op(op);

	return api_submit(c, &(struct api_change){ .op = &change, .fail = ml_fail_err, .then = then });
}

enum call_next ml_empty(struct call *c, const struct ingest_result *res)
{
	(void)res;
	buf_adds(&c->out, "{}");
	return CALL_DONE;
}

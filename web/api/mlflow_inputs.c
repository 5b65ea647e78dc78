/* mlflow_inputs.c: what a run read and made: data sets and logged models. */
#include "web/api/mlflow.h"

bool ml_write_links(struct call *c, struct js *j, const struct query_run *run)
{
	(void)c;
	(void)run;
	js_key(j, "inputs");
	js_raw(j, "{}");
	js_key(j, "outputs");
	js_raw(j, "{}");
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of change kinds: each kind can be applied, has a unique name, and is rejected without its required fields
 * before anything is copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "web/store/auth/token.h"
#include "web/store/files/artifacts.h"
#include "web/store/mlflow/mlflow.h"
#include "web/store/registry/registered.h"
#include "web/store/saved_view/saved_view.h"
#include "web/store/write/change.h"

static const struct change_ops *const kinds[] = {
#define CHANGE(name) &name,
#include "web/store/auth/changes.def"
#include "web/store/files/changes.def"
#include "web/store/mlflow/changes.def"
#include "web/store/registry/changes.def"
#include "web/store/saved_view/changes.def"
#include "web/store/write/changes.def"
#undef CHANGE
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static void each_kind_is_complete(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < KINDS; i++) {
		assert_non_null(kinds[i]->apply);
		assert_true(kinds[i]->name && *kinds[i]->name);
		for (k = 0; k < i; k++)
			assert_string_not_equal(kinds[i]->name, kinds[k]->name);
	}
}

static void kinds_with_a_run_need_an_id(void **state)
{
	const struct change_ops *const of_runs[] = {
		&change_journal, &change_points, &change_run_patch, &change_run_params, &change_run_tags,
		&change_run_untag, &change_run_delete, &change_run_restore, &change_purge_run,
	};
	const char *const bad[] = { NULL, "", "0123", "0123456789ABCDEF0123456789ABCDEF",
				    "0123456789abcdef0123456789abcdef0" };
	struct err err = ERR_INIT;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof of_runs / sizeof of_runs[0]; i++)
		for (k = 0; k < sizeof bad / sizeof bad[0]; k++)
			assert_int_equal(of_runs[i]->check(&(struct ingest_op){ .run = bad[k] }, &err), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_complete),
		cmocka_unit_test(kinds_with_a_run_need_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

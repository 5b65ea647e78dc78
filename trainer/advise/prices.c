/* SPDX-License-Identifier: Apache-2.0 */
/* prices.c: see prices.h. */
#include "trainer/advise/prices.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct prices {
	json_t *root;
};

static const char shipped_prices[] =
#define SHIPPED(name, text) text
#include "trainer/advise/prices.def"
#undef SHIPPED
	;

/* Writes the path of this user's file; returns false if it does not exist. */
static bool find_prices_file(char *ret, size_t n)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int used = -1;

	if (config && *config)
		used = snprintf(ret, n, "%s/dptrain/prices.json", config);
	else if (home && *home)
		used = snprintf(ret, n, "%s/.config/dptrain/prices.json", home);
	return used > 0 && (size_t)used < n && access(ret, F_OK) == 0;
}

static int check_prices(json_t *root, const char *path, struct err *err)
{
	const char *name;
	json_t *v;

	json_object_foreach(root, name, v)
		if (strcmp(name, "currency") && strcmp(name, "per_hour"))
			return err_set(err, ERR_USAGE, "%.200s: unknown member '%.80s': expected currency, per_hour",
				       path, name);
	if (!json_is_string(json_object_get(root, "currency")))
		return err_set(err, ERR_USAGE, "%.200s: currency: expected a string", path);
	if (!json_is_object(json_object_get(root, "per_hour")))
		return err_set(err, ERR_USAGE, "%.200s: per_hour: expected an object of machines and prices", path);
	json_object_foreach(json_object_get(root, "per_hour"), name, v)
		if (!json_is_number(v) || json_number_value(v) < 0)
			return err_set(err, ERR_USAGE, "%.200s: per_hour.%.80s: expected a number of at least 0", path,
				       name);
	return 0;
}

int prices_open(struct prices **ret, const char *path, struct err *err)
{
	char own[4096];
	struct prices *p = calloc(1, sizeof(*p));
	json_error_t e = { .line = 0 };
	int rc = 0;

	if (!p)
		return err_nomem(err, "prices");
	path = path ? path : find_prices_file(own, sizeof(own)) ? own : NULL;
	p->root = path ? json_load_file(path, 0, &e) : json_loads(shipped_prices, 0, &e);
	if (!json_is_object(p->root))
		rc = err_set(err, ERR_USAGE, "%.200s:%d: %s", path ? path : "prices.json", e.line,
			     p->root ? "expected an object" : e.text);
	else
		rc = check_prices(p->root, path ? path : "prices.json", err);
	if (rc)
		prices_free(p);
	else
		*ret = p;
	return rc;
}

void prices_free(struct prices *p)
{
	if (p)
		json_decref(p->root);
	free(p);
}

const char *prices_currency(const struct prices *p)
{
	return json_string_value(json_object_get(p->root, "currency"));
}

double prices_per_hour(const struct prices *p, const char *machine)
{
	const json_t *v = json_object_get(json_object_get(p->root, "per_hour"), machine);

	return v ? json_number_value(v) : -1;
}

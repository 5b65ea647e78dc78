/* diagnosis.c: /runs/{run}/diagnosis for people. */
#include "web/cli/diagnosis.h"

#include "web/cli/cli.h"

static void print_leaf(json_t *leaf)
{
	json_t *low = json_object_get(leaf, "low");

	printf("  %s: %.0f %% of the time", cli_text(leaf, "leaf"),
	       100 * json_number_value(json_object_get(leaf, "share")));
	if (json_is_number(low))
		printf(" (%.0f-%.0f)", 100 * json_number_value(low),
		       100 * json_number_value(json_object_get(leaf, "high")));
	printf("; without it up to %.2fx as fast\n", json_number_value(json_object_get(leaf, "gain")));
	printf("    found  %s\n    usual  %s\n    next   %s\n", cli_text(leaf, "evidence"), cli_text(leaf, "usual"),
	       cli_text(leaf, "action"));
}

void diagnosis_print(struct source *s, const char *id)
{
	struct err ignored = ERR_INIT;
	char target[128];
	json_t *root, *leaf;
	size_t i;

	snprintf(target, sizeof(target), "/api/v1/runs/%s/diagnosis", id);
	if (cli_get_json(s, target, &root, &ignored))
		return;
	if (json_is_string(json_object_get(root, "verdict"))) {
		printf("\nspeed: %s\n", cli_text(root, "verdict"));
		json_array_foreach(json_object_get(root, "leaves"), i, leaf)
			print_leaf(leaf);
		printf("  bound by %s\n", cli_text(root, "bound"));
	}
	if (json_is_object(json_object_get(root, "overfitting")))
		printf("\n%s\n", cli_text(json_object_get(root, "overfitting"), "sentence"));
	json_decref(root);
}

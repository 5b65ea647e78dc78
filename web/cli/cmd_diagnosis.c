/* cmd_diagnosis.c: prints /runs/{run}/diagnosis as text. */
#include "web/cli/cmd_diagnosis.h"

#include "web/cli/cli.h"

static void print_diagnosis_leaf(json_t *leaf)
{
	printf("  %s\n    found: %s\n    usual: %s\n    next: %s\n", cli_text(leaf, "sentence"),
	       cli_text(leaf, "evidence"), cli_text(leaf, "usual"), cli_text(leaf, "action"));
}

void diagnosis_print(struct source *s, const char *id)
{
	struct err ignored = ERR_INIT;
	char target[128];
	json_t *root, *leaves, *leaf;
	size_t i;

	snprintf(target, sizeof(target), "/api/v1/runs/%s/diagnosis", id);
	if (cli_get_json(s, target, &root, &ignored))
		return;
	if (json_is_string(json_object_get(root, "verdict"))) {
		leaves = json_object_get(root, "leaves");
		printf("\nspeed: %s\n", cli_text(root, json_array_size(leaves) ? "verdict" : "sentence"));
		json_array_foreach(leaves, i, leaf)
			print_diagnosis_leaf(leaf);
		printf("  bound by %s\n", cli_text(root, "bound"));
	}
	if (json_is_object(json_object_get(root, "overfitting")))
		printf("\n%s\n", cli_text(json_object_get(root, "overfitting"), "sentence"));
	json_decref(root);
}

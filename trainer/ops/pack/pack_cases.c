/* pack_cases.c: what a pack writes is known to its consumer alone, so it is tested with it: the harness packs every
 * input that a kernel asks to have packed. */
#include "trainer/ops/cases.h"

const struct op_case cases_pack[] = { { NULL } };

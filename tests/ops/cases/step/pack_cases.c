/* SPDX-License-Identifier: Apache-2.0 */
/* pack_cases.c: no cases of its own. Only a consumer can interpret packed data, so the harness packs every input whose
 * kernel requests it and tests both together. */
#include "tests/ops/cases/cases.h"

const struct op_case cases_pack[] = { { NULL } };

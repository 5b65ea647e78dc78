/* SPDX-License-Identifier: Apache-2.0 */
/* derived.h: evaluates a formula over the series of runs. The result has a point at each step at which all metrics of
 * the formula have one; bucketing comes afterwards. */
#ifndef DPT_NATIVE_DERIVED_H
#define DPT_NATIVE_DERIVED_H

#include "web/api/api.h"

/* As points_chart, with one line for each run that has all metrics and params of the formula. o's keys are ignored; o's
 * rank must be a single one. Of several points at a step the last one counts; the time of a point is the latest of its
 * inputs. Open edges of o become those of the inputs. Returns false after failing the call. */
bool derived_chart(struct call *c, const char *formula, struct points_chart_opts *o, struct points_chart *ret);

#endif

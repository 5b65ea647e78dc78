/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_format.h: the bodies of posted alerts: dptrack's own JSON, and the messages that incoming webhooks of Slack,
 * Discord and Microsoft Teams accept. */
#ifndef DPT_WEBHOOK_FORMAT_H
#define DPT_WEBHOOK_FORMAT_H

#include <stdbool.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct alert_fired;

struct webhook_format;

/* The format called name, or by the host of the URL if name is NULL (JSON for other hosts). ERR_USAGE: unknown name. */
int webhook_format_choose(const struct webhook_format **ret, const char *name, const char *url, struct err *err);

/* Returns false for dptrack's own JSON, whose receiver verifies a signature. */
bool webhook_format_is_chat(const struct webhook_format *w);

/* Appends the body of one alert. out fails if memory or its maximum does not suffice. */
void webhook_format_write(const struct webhook_format *w, struct buf *out, const struct alert_fired *f);

#endif

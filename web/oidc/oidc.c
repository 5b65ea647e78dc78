/* SPDX-License-Identifier: Apache-2.0 */
/* oidc.c: the two steps of a sign-in, on threads of their own: a provider that does not answer delays no other request.
 */
#include "web/oidc/oidc_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "web/store/base/map.h"

enum { THREADS = 4, WAITING_MAX = 64, CLAIM_BYTES_MAX = 255, NAME_BYTES_MAX = 200 };

int oidc_new(struct oidc **ret, const char *path, const char *address, struct err *err)
{
	struct oidc *o = mem_zalloc(sizeof(*o));
	int rc = id_tokens_new(&o->tokens, err);

	if (!rc)
		rc = oidc_config_read(o, path, address, err);
	if (rc)
		oidc_free(o);
	else
		*ret = o;
	return rc;
}

int oidc_start(struct oidc *o, struct err *err)
{
	int rc = thread_pool_new(&o->pool, THREADS, err);

	for (size_t i = 0; !rc && i < o->count; i++) {
		struct discovery d = { 0 };
		struct err away = ERR_INIT;

		rc = provider_discover(&o->providers[i], &d, &away);
		if (rc == ERR_PEER) {
			log_warn("sign-in: %s: the server starts without it; it is asked again at each sign-in",
				 away.text);
			rc = 0;
		} else if (rc) {
			err_set(err, rc, "--oidc: %s", away.text);
		}
		discovery_done(&d);
	}
	return rc;
}

void oidc_free(struct oidc *o)
{
	if (!o)
		return;
	thread_pool_free(o->pool);
	free(o->providers);
	free(o->tokens);
	json_decref(o->root);
	free(o);
}

size_t oidc_count(const struct oidc *o)
{
	return o ? o->count : 0;
}

const char *oidc_name(const struct oidc *o, size_t provider)
{
	return o->providers[provider].name;
}

const char *oidc_label(const struct oidc *o, size_t provider)
{
	return o->providers[provider].label;
}

char *oidc_settings(const struct oidc *o, size_t provider)
{
	const struct provider *p = &o->providers[provider];
	json_t *all =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s*, s:O}", "name", p->name, "label", p->label,
			  "issuer", p->issuer, "client_id", p->client_id, "redirect_uri", p->redirect_uri, "scopes",
			  p->scopes, "groups_claim", p->groups_claim, "name_claim", p->name_claim, "grants", p->grants);
	char *text = json_dumps(all, JSON_COMPACT);

	json_decref(all);
	return text;
}

bool oidc_find(const struct oidc *o, const char *name, size_t *ret)
{
	for (size_t i = 0; i < oidc_count(o); i++)
		if (!strcmp(o->providers[i].name, name)) {
			*ret = i;
			return true;
		}
	return false;
}

bool oidc_state_matches(const char *secret, const char *state)
{
	char want[OIDC_SECRET_BYTES];

	provider_derive(secret, "state", want);
	return strlen(state) == sizeof(want) - 1 && sha256_proof_equal(state, want, sizeof(want) - 1);
}

/* Writes the address where the browser signs in (RFC 6749, section 4.1.1). */
static int begin_sign_in(const struct provider *p, struct oidc_step *step, struct err *err)
{
	char state[OIDC_SECRET_BYTES], nonce[OIDC_SECRET_BYTES], verifier[OIDC_SECRET_BYTES], digest[OIDC_SECRET_BYTES];
	struct discovery d = { 0 };
	unsigned char challenge[32];
	struct buf url;
	int rc = provider_discover(p, &d, err);

	if (rc)
		return rc;
	provider_derive(step->secret, "state", state);
	provider_derive(step->secret, "nonce", nonce);
	provider_derive(step->secret, "verifier", verifier);
	sha256_hex(verifier, sizeof(verifier) - 1, digest);
	text_unhex(challenge, digest, sizeof(challenge));
	buf_init(&url, 8192);
	buf_addf(&url, "%s%s", d.authorization, strchr(d.authorization, '?') ? "&" : "?");
	provider_add_query(&url, "response_type", "code");
	provider_add_query(&url, "client_id", p->client_id);
	provider_add_query(&url, "redirect_uri", p->redirect_uri);
	provider_add_query(&url, "scope", p->scopes);
	provider_add_query(&url, "state", state);
	provider_add_query(&url, "nonce", nonce);
	provider_add_query(&url, "code_challenge_method", "S256");
	provider_add_query(&url, "code_challenge", "");
	text_add_base64(&url, challenge, sizeof(challenge), true);
	if (buf_failed(&url))
		rc = err_set(err, ERR_USAGE, "the sign-in address of %s is longer than 8 KiB", p->label);
	else
		step->location = arena_strdup(step->arena, url.data);
	buf_done(&url);
	discovery_done(&d);
	return rc;
}

/* A claim of that name, else the one at its path ("realm_access.roles"). */
static json_t *find_claim(json_t *claims, const char *name)
{
	json_t *at = json_object_get(claims, name);
	char part[64];

	if (at || !strchr(name, '.'))
		return at;
	for (at = claims; at && *name; name += strcspn(name, ".") + (strchr(name, '.') != NULL)) {
		snprintf(part, sizeof(part), "%.*s", (int)strcspn(name, "."), name);
		at = json_object_get(at, part);
	}
	return at;
}

/* A text of 1 to 255 bytes without control characters; NULL: not such a text. */
static const char *claim_text(json_t *claims, const char *name)
{
	const char *text = name ? json_string_value(json_object_get(claims, name)) : NULL;
	size_t n = text ? strlen(text) : 0;

	if (!n || n > CLAIM_BYTES_MAX || n != json_string_length(json_object_get(claims, name)))
		return NULL;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return NULL;
	return text;
}

static const char *find_person_name(const struct provider *p, json_t *claims)
{
	const char *name = claim_text(claims, p->name_claim ? p->name_claim : "preferred_username");

	name = name ? name : claim_text(claims, "email");
	return name && strlen(name) <= NAME_BYTES_MAX ? name : claim_text(claims, "sub");
}

/* What several groups grant together: of a name the widest. */
struct merged {
	struct grant *items;
	size_t count;
	enum grant_level all; /* in all experiments */
};

static void merge_grant(struct merged *m, struct arena *a, const struct grant *g)
{
	for (size_t i = 0; i < m->count; i++) {
		struct grant *has = &m->items[i];

		if (has->prefix != g->prefix || strcmp(has->name, g->name))
			continue;
		has->level = g->level > has->level ? g->level : has->level;
		has->create = has->create || g->create;
		return;
	}
	list_push(a, &m->items, &m->count, *g);
}

/* Adds what the table of the configuration grants to a group: a scope, or a text of grants.h. */
static void merge_group(struct merged *m, struct arena *a, const struct provider *p, const char *group)
{
	const char *grant = json_string_value(json_object_get(p->grants, group));
	struct grants list = { 0 };
	enum token_scope scope;

	if (grant && token_scope_read(grant, &scope))
		m->all = (int)scope > (int)m->all ? (enum grant_level)scope : m->all;
	else if (grant && !grants_parse(&list, a, grant, NULL))
		for (size_t i = 0; i < list.count; i++)
			merge_grant(m, a, &list.items[i]);
}

/* Writes grants as the text that grants_parse reads. */
static const char *write_grants(const struct merged *m, struct arena *a)
{
	const char *text;
	struct buf out;

	buf_init(&out, GRANTS_TEXT_MAX - 1);
	for (size_t i = 0; i < m->count; i++) {
		const struct grant *g = &m->items[i];

		buf_adds(&out, i ? "," : "");
		for (const char *at = g->name; *at; at++)
			buf_addf(&out, strchr("*=,\\", *at) ? "\\%c" : "%c", *at);
		buf_addf(&out, "%s=%s%s", g->prefix ? "*" : "", grant_level_name(g->level), g->create ? "+create" : "");
	}
	text = buf_failed(&out) ? NULL : arena_strdup(a, out.data ? out.data : "");
	buf_done(&out);
	return text;
}

/* Fills scope and grants of the step. */
static void settle_grants(struct oidc_step *step, struct merged *m)
{
	enum grant_level most = m->all;
	bool restricts = false;

	for (size_t i = 0; i < m->count; i++) {
		most = m->items[i].level > most ? m->items[i].level : most;
		restricts = restricts || m->items[i].level != m->all;
	}
	if (restricts && m->all > GRANT_NONE)
		merge_grant(m, step->arena, &(struct grant){ .name = "", .prefix = true, .level = m->all });
	step->grants = restricts ? write_grants(m, step->arena) : "";
	step->scope = step->grants ? (enum token_scope)most : TOKEN_NONE;
	if (!step->grants)
		step->refusal = arena_printf(step->arena,
					     "the groups of %s grant more than %d bytes of text: ask the "
					     "administrator",
					     step->name, GRANTS_TEXT_MAX - 1);
	step->grants = step->grants ? step->grants : "";
}

/* Maps the groups, a list of texts or one text, through the table of the configuration. */
static void grant_groups(struct oidc_step *step, const struct provider *p, json_t *groups)
{
	struct merged m = { .all = GRANT_NONE };
	json_t *group;
	size_t i;

	merge_group(&m, step->arena, p, "*");
	if (json_is_string(groups))
		merge_group(&m, step->arena, p, json_string_value(groups));
	json_array_foreach(groups, i, group)
		if (json_is_string(group))
			merge_group(&m, step->arena, p, json_string_value(group));
	settle_grants(step, &m);
	if (step->scope > TOKEN_NONE || step->refusal)
		return;
	if (groups)
		step->refusal = arena_printf(
			step->arena, "%s is in no group that may use this server: ask its administrator", step->name);
	else
		step->refusal = arena_printf(step->arena,
					     "%s sent no claim \"%s\" of %s, so nothing is granted: ask the "
					     "administrator",
					     p->label, p->groups_claim, step->name);
}

/* Adds claims that only the provider's userinfo has (OpenID Connect Core 1.0, section 5.3). */
static int add_userinfo(const struct provider *p, const struct discovery *d, json_t *answer, json_t *claims,
			struct err *err)
{
	const char *token = json_string_value(json_object_get(answer, "access_token")), *subject;
	json_t *more = NULL;
	int rc;

	if (!d->userinfo || !token ||
	    (find_claim(claims, p->groups_claim) &&
	     find_person_name(p, claims) != json_string_value(json_object_get(claims, "sub"))))
		return 0;
	rc = provider_get(p, d->userinfo, token, &more, err);
	if (rc)
		return rc;
	subject = json_string_value(json_object_get(more, "sub"));
	if (!subject || strcmp(subject, json_string_value(json_object_get(claims, "sub"))))
		rc = err_set(err, ERR_USAGE, "%s described another person than the one who signed in", p->label);
	else
		json_object_update_missing(claims, more);
	json_decref(more);
	return rc;
}

static int check_answer(const struct oidc_step *step, const struct discovery *d, const struct redeemed *r, json_t **ret,
			struct err *err)
{
	const struct provider *p = &step->oidc->providers[step->provider];
	char nonce[OIDC_SECRET_BYTES];
	struct id_token_want want = { .label = p->label,
				      .issuer = p->issuer,
				      .audience = p->client_id,
				      .nonce = nonce,
				      .now_s = clock_wall_ms() / 1000,
				      .date_s = r->date_s };
	int rc = provider_get(p, d->keys, NULL, &want.keys, err);

	if (rc)
		return rc;
	provider_derive(step->secret, "nonce", nonce);
	rc = id_token_check(step->oidc->tokens, json_string_value(json_object_get(r->root, "id_token")), &want, ret,
			    err);
	json_decref(want.keys);
	return rc;
}

/* Redeems the code and finds out who signed in. */
static int finish_sign_in(const struct provider *p, struct oidc_step *step, struct err *err)
{
	struct redeemed r = { NULL };
	struct discovery d = { 0 };
	json_t *claims = NULL;
	int rc;

	if (step->from && strcmp(step->from, p->issuer)) /* RFC 9207 */
		return err_set(err, ERR_USAGE, "the answer is not from %s: sign in again", p->label);
	rc = provider_discover(p, &d, err);
	if (!rc)
		rc = provider_redeem(&d, step, &r, err);
	if (!rc)
		rc = check_answer(step, &d, &r, &claims, err);
	if (!rc && !claim_text(claims, "sub"))
		rc = err_set(err, ERR_USAGE, "the ID token of %s has no \"sub\"", p->label);
	if (!rc)
		rc = add_userinfo(p, &d, r.root, claims, err);
	if (!rc) {
		step->issuer = p->issuer;
		step->subject = arena_strdup(step->arena, claim_text(claims, "sub"));
		step->name = arena_printf(step->arena, "%s:%s", p->name, find_person_name(p, claims));
		grant_groups(step, p, find_claim(claims, p->groups_claim));
	}
	json_decref(claims);
	json_decref(r.root);
	discovery_done(&d);
	return rc;
}

static void run_oidc_step(void *arg)
{
	struct oidc_step *step = arg;
	struct oidc *o = step->oidc;
	const struct provider *p = &o->providers[step->provider];

	step->err = (struct err)ERR_INIT;
	if (step->code)
		finish_sign_in(p, step, &step->err);
	else
		begin_sign_in(p, step, &step->err);
	atomic_fetch_sub(&o->waiting, 1);
	step->done(step->arg); /* the step may end from here on */
}

void oidc_step(struct oidc *o, struct oidc_step *step)
{
	step->oidc = o;
	if (atomic_fetch_add(&o->waiting, 1) >= WAITING_MAX) {
		atomic_fetch_sub(&o->waiting, 1);
		err_set(&step->err, ERR_BUSY, "too many people sign in at once: try again soon");
		step->done(step->arg);
		return;
	}
	step->task = (struct thread_pool_task){ .fn = run_oidc_step, .arg = step };
	thread_pool_give(o->pool, &step->task);
}

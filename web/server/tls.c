/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c: the library's callback has no argument, so the pair in use is the process's. */
#include "config.h"

#include "tracker/mem/mem.h"
#include "web/server/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_GNUTLS

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#define CHAIN_MAX 16
#define KEY_ID_BYTES 64

struct tls_pair {
	gnutls_pcert_st chain[CHAIN_MAX];
	unsigned count;
	gnutls_privkey_t key;
	struct tls_pair *older; /* a handshake may still use it */
};

static _Atomic(struct tls_pair *) tls_now;

static void free_tls_pair(struct tls_pair *p)
{
	for (unsigned i = 0; i < p->count; i++)
		gnutls_pcert_deinit(&p->chain[i]);
	if (p->key)
		gnutls_privkey_deinit(p->key);
	free(p);
}

/* Returns true if the key is that of the certificate with this index. */
static bool is_matching_pair(const struct tls_pair *p, unsigned at)
{
	unsigned char a[KEY_ID_BYTES], b[KEY_ID_BYTES];
	size_t a_bytes = sizeof(a), b_bytes = sizeof(b);
	gnutls_pubkey_t public;
	bool same;

	if (gnutls_pubkey_init(&public) < 0)
		return false;
	same = gnutls_pubkey_import_privkey(public, p->key, 0, 0) >= 0 &&
	       gnutls_pubkey_get_key_id(public, 0, a, &a_bytes) >= 0 &&
	       gnutls_pubkey_get_key_id(p->chain[at].pubkey, 0, b, &b_bytes) >= 0 && a_bytes == b_bytes &&
	       !memcmp(a, b, a_bytes);
	gnutls_pubkey_deinit(public);
	return same;
}

static int import_tls_key(struct tls_pair *p, const char *key, struct err *err)
{
	const gnutls_datum_t secret = { (unsigned char *)(uintptr_t)key, (unsigned)strlen(key) };
	int rc = gnutls_privkey_init(&p->key);

	if (rc >= 0)
		rc = gnutls_privkey_import_x509_raw(p->key, &secret, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (rc >= 0)
		return 0;
	if (strstr(key, "ENCRYPTED"))
		return err_set(err, ERR_USAGE, "--tls-key: the key has a password: remove it (openssl pkey -in FILE "
			       "-out NEW)");
	return err_set(err, ERR_USAGE, "--tls-key: cannot read the key: %s", gnutls_strerror(rc));
}

static int import_tls_pair(struct tls_pair *p, const char *cert, const char *key, struct err *err)
{
	const gnutls_datum_t chain = { (unsigned char *)(uintptr_t)cert, (unsigned)strlen(cert) };
	unsigned n = CHAIN_MAX, i;
	int rc = gnutls_pcert_list_import_x509_raw(p->chain, &n, &chain, GNUTLS_X509_FMT_PEM, 0);

	if (rc < 0)
		return err_set(err, ERR_USAGE, "--tls-cert: cannot read the certificate: %s", gnutls_strerror(rc));
	p->count = n;
	rc = import_tls_key(p, key, err);
	if (rc || is_matching_pair(p, 0))
		return rc;
	for (i = 1; i < n && !is_matching_pair(p, i); i++)
		;
	if (i < n)
		return err_set(err, ERR_USAGE, "--tls-cert: certificate %u of the file is the server's: put it first, "
			       "before its issuers", i + 1);
	return err_set(err, ERR_USAGE, "--tls-key: not the key of the certificate in --tls-cert: they must match");
}

int tls_use(const char *cert, const char *key, struct err *err)
{
	struct tls_pair *p = mem_zalloc(sizeof(*p));
	int rc;

	rc = import_tls_pair(p, cert, key, err);
	if (rc) {
		free_tls_pair(p);
		return rc;
	}
	p->older = atomic_load(&tls_now);
	atomic_store(&tls_now, p);
	return 0;
}

static void note_certificate_dates(const gnutls_pcert_st *cert, char *ret, size_t n)
{
	gnutls_x509_crt_t crt;
	time_t from, until, now = time(NULL);
	char day[32];
	struct tm tm;

	if (gnutls_pcert_export_x509((gnutls_pcert_st *)(uintptr_t)cert, &crt) < 0)
		return;
	from = gnutls_x509_crt_get_activation_time(crt);
	until = gnutls_x509_crt_get_expiration_time(crt);
	gnutls_x509_crt_deinit(crt);
	if (now >= from && now <= until)
		return;
	gmtime_r(now < from ? &from : &until, &tm);
	strftime(day, sizeof(day), "%Y-%m-%d %H:%M UTC", &tm);
	snprintf(ret, n, now < from ? "--tls-cert: not valid before %s: clients refuse it until then; check the clock" :
		 "--tls-cert: expired on %s: clients refuse it: renew it", day);
}

void tls_note(char *ret, size_t n)
{
	const struct tls_pair *p = atomic_load(&tls_now);
	unsigned i;

	ret[0] = '\0';
	for (i = 0; p && i < p->count && !ret[0]; i++)
		note_certificate_dates(&p->chain[i], ret, n);
}

static int give_tls_pair(gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
			 const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **ret,
			 unsigned *ret_count, gnutls_privkey_t *ret_key)
{
	struct tls_pair *p = atomic_load(&tls_now);

	(void)session;
	(void)authorities;
	(void)authority_count;
	(void)algorithms;
	(void)algorithm_count;
	*ret = p->chain;
	*ret_count = p->count;
	*ret_key = p->key;
	return 0;
}

void *tls_callback(void)
{
	gnutls_certificate_retrieve_function2 *callback = give_tls_pair;
	void *untyped;

	memcpy(&untyped, &callback, sizeof(untyped));
	return untyped;
}

void tls_done(void)
{
	struct tls_pair *p = atomic_exchange(&tls_now, NULL), *older;

	for (; p; p = older) {
		older = p->older;
		free_tls_pair(p);
	}
}

#else

int tls_use(const char *cert, const char *key, struct err *err)
{
	(void)cert;
	(void)key;
	return err_set(err, ERR_UNSUPPORTED, "built without GnuTLS: restart the server to use another certificate");
}

void tls_note(char *ret, size_t n)
{
	(void)n;
	ret[0] = '\0';
}

void *tls_callback(void)
{
	return NULL;
}

void tls_done(void)
{
}

#endif

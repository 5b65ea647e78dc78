/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h: the certificate of the server while it runs: it can be read again for connections that begin later. */
#ifndef DPT_SERVER_TLS_H
#define DPT_SERVER_TLS_H

#include "tracker/base/err.h"

/* Uses a certificate chain and its key, PEM texts, for new connections; those before keep theirs. On failure the last
 * pair stays. ERR_USAGE: they cannot be read or do not match; ERR_UNSUPPORTED: built without GnuTLS. One thread. */
int tls_use(const char *cert, const char *key, struct err *err);

/* The library's callback (MHD_OPTION_HTTPS_CERT_CALLBACK) after a successful tls_use; NULL: built without GnuTLS. */
void *tls_callback(void);

void tls_done(void); /* after the server stopped */

#endif

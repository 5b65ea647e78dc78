/* SPDX-License-Identifier: Apache-2.0 */
/* curlso.c: loads libcurl's functions and checks the constants. */
#include "tracker/curl/curlso.h"

#include <stddef.h>

#include "config.h"
#include "tracker/base/library.h"

#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_DEPRECATION 1
#include <curl/curl.h>

/* Each constant is libcurl's; they never change, as that would break existing programs. */
#define SAME(ours, theirs) _Static_assert((long)CURLSO_##ours == (long)(theirs), #ours)

SAME(LOW_SPEED_LIMIT, CURLOPT_LOW_SPEED_LIMIT);
SAME(LOW_SPEED_TIME, CURLOPT_LOW_SPEED_TIME);
SAME(NOPROGRESS, CURLOPT_NOPROGRESS);
SAME(NETRC, CURLOPT_NETRC);
SAME(FOLLOWLOCATION, CURLOPT_FOLLOWLOCATION);
SAME(MAXREDIRS, CURLOPT_MAXREDIRS);
SAME(BUFFERSIZE, CURLOPT_BUFFERSIZE);
SAME(REDIR_PROTOCOLS, CURLOPT_REDIR_PROTOCOLS);
SAME(PROXY, CURLOPT_PROXY);
SAME(RANGE, CURLOPT_RANGE);
SAME(HEADERDATA, CURLOPT_HEADERDATA);
SAME(HEADERFUNCTION, CURLOPT_HEADERFUNCTION);
SAME(UNSUPPORTED_PROTOCOL, CURLE_UNSUPPORTED_PROTOCOL);
SAME(URL_MALFORMAT, CURLE_URL_MALFORMAT);
SAME(TOO_MANY_REDIRECTS, CURLE_TOO_MANY_REDIRECTS);
SAME(PEER_FAILED_VERIFICATION, CURLE_PEER_FAILED_VERIFICATION);
SAME(CACERT_BADFILE, CURLE_SSL_CACERT_BADFILE);
SAME(NETRC_OPTIONAL, CURL_NETRC_OPTIONAL);
SAME(PATH_AS_IS, CURLOPT_PATH_AS_IS);
SAME(NOBODY, CURLOPT_NOBODY);
SAME(SSL_VERIFYPEER, CURLOPT_SSL_VERIFYPEER);
SAME(SSL_VERIFYHOST, CURLOPT_SSL_VERIFYHOST);
SAME(NOSIGNAL, CURLOPT_NOSIGNAL);
SAME(CONNECTTIMEOUT_MS, CURLOPT_CONNECTTIMEOUT_MS);
SAME(PROTOCOLS, CURLOPT_PROTOCOLS);
SAME(WRITEDATA, CURLOPT_WRITEDATA);
SAME(URL, CURLOPT_URL);
SAME(ERRORBUFFER, CURLOPT_ERRORBUFFER);
SAME(POSTFIELDS, CURLOPT_POSTFIELDS);
SAME(USERAGENT, CURLOPT_USERAGENT);
SAME(HTTPHEADER, CURLOPT_HTTPHEADER);
SAME(CUSTOMREQUEST, CURLOPT_CUSTOMREQUEST);
SAME(XFERINFODATA, CURLOPT_XFERINFODATA);
SAME(CAINFO, CURLOPT_CAINFO);
SAME(WRITEFUNCTION, CURLOPT_WRITEFUNCTION);
SAME(XFERINFOFUNCTION, CURLOPT_XFERINFOFUNCTION);
SAME(POSTFIELDSIZE_LARGE, CURLOPT_POSTFIELDSIZE_LARGE);
SAME(RESPONSE_CODE, CURLINFO_RESPONSE_CODE);
SAME(PRETRANSFER_TIME, CURLINFO_PRETRANSFER_TIME_T);
SAME(RETRY_AFTER, CURLINFO_RETRY_AFTER);
SAME(OK, CURLE_OK);
SAME(TIMED_OUT, CURLE_OPERATION_TIMEDOUT);
SAME(ABORTED, CURLE_ABORTED_BY_CALLBACK);
SAME(GLOBAL_DEFAULT, CURL_GLOBAL_DEFAULT);
SAME(HTTP_AND_HTTPS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
SAME(ERROR_BYTES, CURL_ERROR_SIZE);
_Static_assert(sizeof(curl_off_t) == sizeof(int64_t) && sizeof(CURLcode) == sizeof(int), "types");
_Static_assert(sizeof(CURLMsg) == sizeof(struct curlso_message) &&
	       offsetof(CURLMsg, data) == offsetof(struct curlso_message, result), "CURLMsg");
#endif

/* The second list's functions are newer; callers check multi_init before they use them. */
#define CURLSO_EASY(X)                                                                                                 \
	X(global_init)                                                                                                 \
	X(easy_init)                                                                                                   \
	X(easy_setopt)                                                                                                 \
	X(easy_perform) X(easy_getinfo) X(easy_strerror) X(easy_reset) X(easy_cleanup) X(slist_append) X(slist_free_all)
#define CURLSO_MULTI(X)                                                                                                \
	X(multi_init)                                                                                                  \
	X(multi_cleanup)                                                                                               \
	X(multi_add_handle) X(multi_remove_handle) X(multi_perform) X(multi_poll) X(multi_info_read) X(multi_wakeup)

#ifdef STATIC_PROGRAM
#define CURLSO_LINKED(name) .name = (void *)curl_##name,

static int load_curl(struct curlso *c, struct err *err)
{
	(void)err;
	*c = (struct curlso){ CURLSO_EASY(CURLSO_LINKED) CURLSO_MULTI(CURLSO_LINKED) };
	return 0;
}
#else
#define CURLSO_OPENED(name) { "curl_" #name, &c->name },

static int load_curl(struct curlso *c, struct err *err)
{
	const struct library library = { "libcurl.so.4", "HTTP needs libcurl (Debian: libcurl4)" };
	const struct library_function easy[] = { CURLSO_EASY(CURLSO_OPENED) },
				      multi[] = { CURLSO_MULTI(CURLSO_OPENED) };
	int rc = library_load(&library, easy, sizeof(easy) / sizeof(easy[0]), err);

	if (!rc && library_load(&library, multi, sizeof(multi) / sizeof(multi[0]), NULL))
		c->multi_init = NULL;
	return rc;
}
#endif

int curlso_load(struct curlso *ret, struct err *err)
{
	struct curlso c = { .multi_init = NULL };
	int rc = load_curl(&c, err);

	if (rc)
		return rc;
	if (c.global_init(CURLSO_GLOBAL_DEFAULT))
		return err_set(err, ERR_UNSUPPORTED, "libcurl could not be initialised");
	*ret = c;
	return 0;
}

bool curlso_for_good(int code)
{
	return code == CURLSO_URL_MALFORMAT || code == CURLSO_UNSUPPORTED_PROTOCOL ||
	       code == CURLSO_TOO_MANY_REDIRECTS || code == CURLSO_PEER_FAILED_VERIFICATION ||
	       code == CURLSO_CACERT_BADFILE;
}

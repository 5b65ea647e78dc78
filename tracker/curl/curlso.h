/* SPDX-License-Identifier: Apache-2.0 */
/* curlso.h: libcurl, loaded when it is first needed: a run without a server neither loads nor requires it. This header
 * declares the part of its binary interface that is used, so that dptrack builds without libcurl's header. If that
 * header is present, curlso.c checks the constants against it. */
#ifndef DPT_CURL_CURLSO_H
#define DPT_CURL_CURLSO_H

#include "tracker/base/err.h"

/* Options of a transfer, with the argument of each. */
enum curlso_option {
	CURLSO_LOW_SPEED_LIMIT = 19, /* long */
	CURLSO_LOW_SPEED_TIME = 20,
	CURLSO_NOPROGRESS = 43,
	CURLSO_NETRC = 51,
	CURLSO_FOLLOWLOCATION = 52,
	CURLSO_NOBODY = 44,
	CURLSO_SSL_VERIFYPEER = 64,
	CURLSO_MAXREDIRS = 68,
	CURLSO_SSL_VERIFYHOST = 81,
	CURLSO_BUFFERSIZE = 98,
	CURLSO_NOSIGNAL = 99,
	CURLSO_CONNECTTIMEOUT_MS = 156,
	CURLSO_PROTOCOLS = 181,
	CURLSO_REDIR_PROTOCOLS = 182,
	CURLSO_PATH_AS_IS = 234,
	CURLSO_WRITEDATA = 10001, /* pointer */
	CURLSO_URL = 10002,
	CURLSO_PROXY = 10004,
	CURLSO_RANGE = 10007,
	CURLSO_ERRORBUFFER = 10010,
	CURLSO_POSTFIELDS = 10015,
	CURLSO_USERAGENT = 10018,
	CURLSO_HTTPHEADER = 10023,
	CURLSO_HEADERDATA = 10029,
	CURLSO_CUSTOMREQUEST = 10036,
	CURLSO_XFERINFODATA = 10057,
	CURLSO_CAINFO = 10065,
	CURLSO_WRITEFUNCTION = 20011, /* function */
	CURLSO_HEADERFUNCTION = 20079,
	CURLSO_XFERINFOFUNCTION = 20219,
	CURLSO_POSTFIELDSIZE_LARGE = 30120, /* int64_t */
	CURLSO_UPLOAD_BUFFERSIZE = 280,	    /* bytes; since 7.62, older ones refuse it */
};

enum curlso_info {
	CURLSO_RESPONSE_CODE = 0x200002,    /* long */
	CURLSO_PRETRANSFER_TIME = 0x600035, /* int64_t, microseconds */
	CURLSO_RETRY_AFTER = 0x600039,	    /* int64_t, seconds */
};

enum {
	CURLSO_OK = 0,
	CURLSO_UNSUPPORTED_PROTOCOL = 1,
	CURLSO_URL_MALFORMAT = 3,
	CURLSO_TIMED_OUT = 28,
	CURLSO_ABORTED = 42, /* the progress function aborted the transfer */
	CURLSO_TOO_MANY_REDIRECTS = 47,
	CURLSO_PEER_FAILED_VERIFICATION = 60,
	CURLSO_CACERT_BADFILE = 77,
	CURLSO_NETRC_OPTIONAL = 1,
	CURLSO_GLOBAL_DEFAULT = 3,
	CURLSO_HTTP_AND_HTTPS = 3,
	CURLSO_ERROR_BYTES = 256,
};

struct curl_slist;

/* A finished transfer of a multi handle. */
struct curlso_message {
	int kind;
	void *easy;
	union {
		void *pointer;
		int code;
	} result;
};

struct curlso {
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	int (*easy_setopt)(void *easy, int option, ...);
	int (*easy_perform)(void *easy);
	int (*easy_getinfo)(void *easy, int info, ...);
	const char *(*easy_strerror)(int code);
	void (*easy_reset)(void *easy);
	void (*easy_cleanup)(void *easy);
	struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
	void (*slist_free_all)(struct curl_slist *list);
	/* Concurrent transfers; multi_init is NULL if the library is too old for them (before 7.68). */
	void *(*multi_init)(void);
	int (*multi_cleanup)(void *multi);
	int (*multi_add_handle)(void *multi, void *easy);
	int (*multi_remove_handle)(void *multi, void *easy);
	int (*multi_perform)(void *multi, int *running);
	int (*multi_poll)(void *multi, void *more, unsigned n_more, int timeout_ms, int *ret_n);
	int (*multi_wakeup)(void *multi);
	struct curlso_message *(*multi_info_read)(void *multi, int *left);
};

/* Returns 0, or ERR_UNSUPPORTED with the loader's reason. The library stays loaded for the life of the process. */
int curlso_load(struct curlso *ret, struct err *err);

bool curlso_for_good(int code); /* the same request would fail again */

#endif

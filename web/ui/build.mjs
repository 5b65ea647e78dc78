// SPDX-License-Identifier: Apache-2.0
// Bundles the page: src/main.tsx and src/style.css into OUT/dist (hashed names, one index.html; what is imported with
// import() becomes a script of its own, loaded when it is wanted; NAME.br is NAME compressed by brotli), and the parts
// that need no browser into OUT/pure.mjs for the tests. --extra FILE: bundles that page of the tests instead, which
// names these sources #ui/….
// Usage: node build.mjs [--out DIR] [--top DIR] [--watch] [--extra FILE]
import { build, context, transform } from 'esbuild';
import { mkdir, readdir, readFile, rm, writeFile, rename } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { merge } from './merge.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const arg = (name) => {
	const i = process.argv.indexOf(name);
	return i < 0 ? undefined : process.argv[i + 1];
};
const out = path.resolve(arg('--out') ?? here);
const dist = path.join(out, 'dist');
/** The folder that has schema/. */
const top = path.resolve(arg('--top') ?? path.join(here, '../..'));
const watching = process.argv.includes('--watch');
const extra = arg('--extra');

/** Writes index.html with the hashed names; last, so that a folder with an index.html is complete. */
async function index(meta) {
	const entry = Object.keys(meta.outputs).find((f) => meta.outputs[f].entryPoint === page.entryPoints.page);
	const css = Object.keys(meta.outputs).map((f) => path.basename(f)).find((n) => n.endsWith('.css'));
	const js = watching ? path.basename(entry) : await merge(dist, meta, entry);
	const html = (await readFile(path.join(here, 'src/index.html'), 'utf8'))
		.replace('{{css}}', css).replace('{{js}}', js);
	await writeFile(path.join(dist, 'index.html.new'), html);
	if (!watching) await pack();
	await rename(path.join(dist, 'index.html.new'), path.join(dist, 'index.html'));
}

/** Writes NAME.br for each file of the page, index.html.br for index.html.new. */
async function pack() {
	for (const name of await readdir(dist))
		await writeFile(path.join(dist, name.replace(/\.new$/, '') + '.br'),
			brotliCompressSync(await readFile(path.join(dist, name))));
}

/** Styles of later parts of the page are texts of their scripts, small like these. */
const partStyles = {
	name: 'part styles',
	setup: (b) => b.onLoad({ filter: /\.part\.css$/ }, async ({ path: file }) => {
		const { code } = await transform(await readFile(file, 'utf8'), { loader: 'css', minify: true });
		return { contents: code, loader: 'text' };
	}),
};

/** import … from 'schema/….def': of a table with the lines MACRO(a, b), { MACRO: [['a', 'b']] }. */
const tables = {
	name: 'tables',
	setup: (b) => {
		b.onResolve({ filter: /^schema\/.*\.def$/ }, ({ path: name }) => ({ path: path.join(top, name) }));
		b.onLoad({ filter: /\.def$/ }, async ({ path: file }) => {
			const table = {};
			const lines = (await readFile(file, 'utf8')).matchAll(/^([A-Z_]+)\((.*)\)$/gm);
			for (const [, macro, list] of lines)
				(table[macro] ??= [])
					.push([...list.matchAll(/"([^"]*)"|[^\s,]+/g)].map((m) => m[1] ?? m[0]));
			return { loader: 'json', contents: JSON.stringify(table) };
		});
	},
};

const page = {
	absWorkingDir: here,
	entryPoints: { page: 'src/main.tsx' },
	outdir: dist,
	entryNames: '[name]-[hash]',
	chunkNames: '[name]-[hash]',
	assetNames: '[name]-[hash]',
	bundle: true,
	splitting: true,
	minify: true,
	format: 'esm',
	target: 'es2022',
	jsx: 'automatic',
	jsxImportSource: 'preact',
	legalComments: 'none',
	metafile: true,
	charset: 'utf8',
	logLevel: 'warning',
	plugins: [partStyles, tables, {
		name: 'index',
		setup: (b) => b.onEnd(async (r) => {
			if (!r.errors.length) await index(r.metafile);
		}),
	}],
};
const pure = {
	absWorkingDir: here,
	entryPoints: { pure: 'src/pure.ts' },
	outdir: out,
	outExtension: { '.js': '.mjs' },
	bundle: true,
	format: 'esm',
	target: 'es2022',
	logLevel: 'warning',
	plugins: [tables],
};

/** A page of the tests: one script with its styles, and an index.html. */
async function extraPage() {
	await build({ ...page, entryPoints: { page: path.resolve(extra) }, splitting: false, entryNames: '[name]',
		plugins: [partStyles, tables], alias: { '#ui': path.join(here, 'src') },
		nodePaths: [path.join(here, 'node_modules')] });
	const html = await readFile(path.join(here, 'src/index.html'), 'utf8');
	await writeFile(path.join(dist, 'index.html'), html.replace('{{css}}', 'page.css')
		.replace('{{js}}', 'page.js'));
}

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
if (extra) {
	await extraPage();
} else if (watching) {
	await (await context(page)).watch();
} else {
	await build(pure);
	await build(page);
}

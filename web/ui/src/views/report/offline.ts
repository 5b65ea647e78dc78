// SPDX-License-Identifier: Apache-2.0
// Saves a report as one HTML file without a server: text, drawings, numbers, and the series as REST replies.
import type { LineChart } from '../../charts/line/index.ts';
import { saveBlob } from '../base/save.ts';

const EMPTY = new Set(['br', 'hr', 'img', 'input', 'col']);
/** Attributes that matter without the page's script. */
const KEPT = /^(class|href|scope|colspan|start|type|checked|disabled|alt|data-(run|key|frozen|series))$/;
const COLOURS = ['back', 'panel', 'raise', 'line', 'grid', 'text', 'dim', 'accent', 'bad'];

const STYLE = `
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 16px; max-width: 1000px; background: var(--back); color: var(--text);
	font: 15px/1.5 -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, sans-serif; }
a { color: var(--accent); }
.dim, figcaption span { color: var(--dim); }
figure { margin: 16px 0; padding: 8px 12px; background: var(--panel); border: 1px solid var(--line);
	border-radius: 7px; }
figcaption { display: flex; gap: 10px; flex-wrap: wrap; }
svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 12px 0 20px; }
th, td { padding: 2px 10px 2px 0; text-align: left; border-top: 1px solid var(--grid); }
.num { text-align: right; font-variant-numeric: tabular-nums; }
pre, code { background: var(--raise); border-radius: 3px; padding: 0 3px; overflow-x: auto; }
blockquote { margin: 0; padding-left: 10px; border-left: 3px solid var(--line); color: var(--dim); }
.nothing, .problem { color: var(--bad); }
`;

const escaped = (text: string) =>
	text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!);

/** Makes clip path names unique in the document. */
function apart(svg: string, n: number): string {
	return svg.replace(/id="clip/g, `id="c${n}-clip`).replace(/url\(#clip/g, `url(#c${n}-clip`);
}

function attributes(e: Element): string {
	return [...e.attributes].filter((a) => KEPT.test(a.name)).map((a) =>
		` ${a.name}="${escaped(a.name === 'href' ? (e as HTMLAnchorElement).href : a.value)}"`).join('');
}

/** Serialises an element as HTML, with drawings in place of charts and without interactive parts (data-here). */
function htmlOf(n: Node, drawings: ReadonlyMap<Node, string>): string {
	if (n.nodeType === Node.TEXT_NODE) return escaped(n.textContent ?? '');
	if (!(n instanceof Element) || n.hasAttribute('data-here')) return '';
	const drawing = drawings.get(n);
	if (drawing !== undefined) return drawing;
	const tag = n.localName;
	if (tag === 'script') return `<script${attributes(n)}>${n.textContent}</script>`;
	if (EMPTY.has(tag)) return `<${tag}${attributes(n)}>`;
	return `<${tag}${attributes(n)}>${[...n.childNodes].map((c) => htmlOf(c, drawings)).join('')}</${tag}>`;
}

async function drawingsIn(article: Element): Promise<Map<Node, string>> {
	const { pictureOf } = await import('../../charts/line/picture.ts');
	const out = new Map<Node, string>();
	for (const el of article.querySelectorAll<HTMLElement & { chart?: LineChart }>('[data-chart]')) {
		const svg = el.chart && await pictureOf(el.chart, el.dataset.chart!, 'svg');
		if (svg) out.set(el, apart(await svg.text(), out.size));
	}
	return out;
}

/** Saves the article as a file in its current colours. */
export async function saveOffline(article: Element, title: string): Promise<void> {
	const css = getComputedStyle(article);
	const colours = COLOURS.map((c) => `--${c}: ${css.getPropertyValue('--' + c)};`).join(' ');
	const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${escaped(title)}</title>
<style>:root { ${colours} }${STYLE}</style>
</head>
<body>${htmlOf(article, await drawingsIn(article))}</body>
</html>
`;
	saveBlob(new Blob([html], { type: 'text/html' }), title, 'html');
}

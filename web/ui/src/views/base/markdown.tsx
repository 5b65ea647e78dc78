// SPDX-License-Identifier: Apache-2.0
// Renders the Markdown tokens of base/text/markdown.ts as elements.
import { createElement, type ComponentChildren } from 'preact';
import type { MarkedToken, Tokens } from 'marked';
import { inside, parseMarkdown, safeLink } from '../../base/text/markdown.ts';

/** Address of an image in a note; null unless it is one of the run's artifacts. */
type ImageOf = (src: string) => string | null;

/** Context of a text. */
interface Around {
	imageOf: ImageOf;
	/** Level of the heading above the text. */
	below: number;
}

const all = (t: MarkedToken, around: Around): ComponentChildren => inside(t).map((c) => draw(c, around));

function cell(c: Tokens.TableCell, around: Around) {
	const inner = c.tokens.map((t) => draw(t as MarkedToken, around));
	return createElement(c.header ? 'th' : 'td', { class: c.align ?? undefined }, inner);
}

function table(t: Tokens.Table, around: Around) {
	return (
		<table>
			<thead><tr>{t.header.map((c) => cell(c, around))}</tr></thead>
			<tbody>{t.rows.map((r) => <tr>{r.map((c) => cell(c, around))}</tr>)}</tbody>
		</table>
	);
}

function image(t: Tokens.Image, { imageOf }: Around): ComponentChildren {
	const src = imageOf(t.href);
	return src ? <img src={src} alt={t.text} loading="lazy" /> : t.text;
}

function draw(t: MarkedToken, around: Around): ComponentChildren {
	switch (t.type) {
	case 'heading': return createElement(`h${Math.min(6, t.depth + around.below)}`, null, all(t, around));
	case 'paragraph': return <p>{all(t, around)}</p>;
	case 'code': return <pre>{t.text}</pre>;
	case 'blockquote': return <blockquote>{all(t, around)}</blockquote>;
	case 'hr': return <hr />;
	case 'list': return t.ordered ? <ol start={Number(t.start)}>{all(t, around)}</ol> : <ul>{all(t, around)}</ul>;
	case 'list_item': return <li>{all(t, around)}</li>;
	case 'checkbox': return <input type="checkbox" checked={t.checked} disabled />;
	case 'table': return table(t, around);
	case 'codespan': return <code>{t.text}</code>;
	case 'br': return <br />;
	case 'strong': case 'em': case 'del': return createElement(t.type, null, all(t, around));
	case 'link':
		if (!safeLink(t.href)) return t.raw;
		return <a href={t.href} target="_blank" rel="noopener noreferrer">{all(t, around)}</a>;
	case 'image': return image(t, around);
	case 'text': return t.tokens ? all(t, around) : t.text;
	case 'escape': return t.text;
	case 'html': return t.raw;
	case 'space': case 'def': return null;
	}
}

interface Options {
	text: string;
	imageOf: ImageOf;
	/** Level of the heading above it. */
	below?: number;
}

export function Markdown({ text, imageOf, below = 2 }: Options) {
	return <div class="markdown">{parseMarkdown(text).map((t) => draw(t, { imageOf, below }))}</div>;
}

// Notes as they are meant to be read: the tokens of base/text/markdown.ts as elements.
import { createElement, type ComponentChildren } from 'preact';
import type { MarkedToken, Tokens } from 'marked';
import { inside, parseMarkdown, safeLink } from '../../base/text/markdown.ts';

/** Where a picture that a note names lies; null for one that is not the run's own. */
type ImageOf = (src: string) => string | null;

function all(t: MarkedToken, imageOf: ImageOf): ComponentChildren {
	return inside(t).map((c) => draw(c, imageOf));
}

function cell(c: Tokens.TableCell, imageOf: ImageOf) {
	const inner = c.tokens.map((t) => draw(t as MarkedToken, imageOf));
	return createElement(c.header ? 'th' : 'td', { class: c.align ?? undefined }, inner);
}

function table(t: Tokens.Table, imageOf: ImageOf) {
	return (
		<table>
			<thead><tr>{t.header.map((c) => cell(c, imageOf))}</tr></thead>
			<tbody>{t.rows.map((r) => <tr>{r.map((c) => cell(c, imageOf))}</tr>)}</tbody>
		</table>
	);
}

function image(t: Tokens.Image, imageOf: ImageOf): ComponentChildren {
	const src = imageOf(t.href);
	return src ? <img src={src} alt={t.text} loading="lazy" /> : t.text;
}

function draw(t: MarkedToken, imageOf: ImageOf): ComponentChildren {
	switch (t.type) {
	case 'heading': return createElement(`h${Math.min(6, t.depth + 2)}`, null, all(t, imageOf));
	case 'paragraph': return <p>{all(t, imageOf)}</p>;
	case 'code': return <pre>{t.text}</pre>;
	case 'blockquote': return <blockquote>{all(t, imageOf)}</blockquote>;
	case 'hr': return <hr />;
	case 'list': return t.ordered ? <ol start={Number(t.start)}>{all(t, imageOf)}</ol> : <ul>{all(t, imageOf)}</ul>;
	case 'list_item': return <li>{all(t, imageOf)}</li>;
	case 'checkbox': return <input type="checkbox" checked={t.checked} disabled />;
	case 'table': return table(t, imageOf);
	case 'codespan': return <code>{t.text}</code>;
	case 'br': return <br />;
	case 'strong': case 'em': case 'del': return createElement(t.type, null, all(t, imageOf));
	case 'link':
		if (!safeLink(t.href)) return t.raw;
		return <a href={t.href} target="_blank" rel="noopener noreferrer">{all(t, imageOf)}</a>;
	case 'image': return image(t, imageOf);
	case 'text': return t.tokens ? all(t, imageOf) : t.text;
	case 'escape': return t.text;
	case 'html': return t.raw;
	case 'space': case 'def': return null;
	}
}

export function Markdown({ text, imageOf }: { text: string; imageOf: ImageOf }) {
	return <div class="markdown">{parseMarkdown(text).map((t) => draw(t, imageOf))}</div>;
}

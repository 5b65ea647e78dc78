// SPDX-License-Identifier: Apache-2.0
// Prints every text of the page with its file and line, for proofreading: node web/ui/list-texts.mjs [BUILD]. It
// needs a build with the page's packages. {…} is a value, <…> an element.
//
// Capitals, one rule: a text that stands alone begins with one (heading, tab, button, menu entry, label, column head,
// option, placeholder, tooltip, message); only its first word has one, names apart. In lower case begins what continues
// a line: a value put into a text, a counted word ("3 runs"), a fact or note after another ("goal: max"), a state or a
// value ("finished", "rank 0", "step 100"). Names of params, metrics and phases keep their spelling, and so do units.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const work = path.resolve(process.argv[2] ?? 'build', 'web/ui/work');
const require = createRequire(path.join(work, 'package.json'));
const typescript = async (name) => import(pathToFileURL(require.resolve('typescript/unstable/' + name)));
const [{ API }, is] = await Promise.all([typescript('sync'), typescript('ast/is')]);

/** Attributes that are shown or read out, and members of objects that become such. */
const SHOWN = /^(title|aria-label|aria-valuetext|placeholder|label|word|text|alt|hint|each|note|name|by)$/;
/** Attributes that never are. */
const HIDDEN = /^(class|rel|d|style|type|id|key|role|fill|list|icon|kind|src|href|sandbox|viewBox|transform)$/;
const WORDS = /\p{L}{2}[,;:.]? +[\p{L}(“0-9]|^\p{Lu}\p{Ll}+$/u;
/** What looks like a text but is one for machines: keys, styles, SQL, selectors, paths of SVG. */
const SYNTAX =
	/^(?:Enter|Escape|Home|End|Delete|Infinity|Tab|Backspace|Arrow\w*|Page\w*)$|^[.([<\d]|\b[MLHV] ?\d|px|scale: /;

/** A text with its values as {…}; null: the node is none. */
function textOf(node) {
	if (is.isStringLiteral(node) || is.isNoSubstitutionTemplateLiteral(node)) return node.text;
	if (is.isTemplateExpression(node))
		return node.head.text + node.templateSpans.map((s) =>
			(textOf(s.expression) ?? '{…}') + s.literal.text).join('');
	if (is.isBinaryExpression(node) && node.operatorToken.getText() === '+') {
		const [a, b] = [textOf(node.left), textOf(node.right)];
		return a === null && b === null ? null : (a ?? '{…}') + (b ?? '{…}');
	}
	return null;
}

/** What an element shows, in one line. */
function inside(children) {
	return children.map((c) => is.isJsxText(c) ? c.text.replace(/\s*\n\s*/g, c.text.trim() ? ' ' : '')
		: !is.isJsxExpression(c) ? '<…>' : c.expression ? textOf(c.expression) ?? '{…}' : '').join('').trim();
}

function list(file, print) {
	const visit = (node, shown) => {
		const text = textOf(node);
		if (text !== null && (shown ? /\p{L}{2}/u : WORDS).test(text) && !SYNTAX.test(text))
			return print(node, text);
		if ((is.isJsxElement(node) || is.isJsxFragment(node)) && node.children.some((c) => is.isJsxText(c)
			&& /\p{L}/u.test(c.text))) print(node.children[0], inside(node.children));
		const attribute = is.isJsxAttribute(node) && node.name.getText();
		if (is.isImportDeclaration(node) || HIDDEN.test(attribute)) return undefined;
		const named = SHOWN.test(is.isPropertyAssignment(node) ? node.name.getText() : attribute);
		const counted = is.isCallExpression(node) && node.expression.getText() === 'count';
		return void node.forEachChild((c) => void visit(c, shown || named || counted));
	};
	visit(file, false);
}

const api = new API({ cwd: work });
const { program, rootFiles } = api.updateSnapshot({ openProject: path.join(work, 'tsconfig.json') }).getProjects()[0];
for (const name of [...rootFiles].sort()) {
	const file = program.getSourceFile(name);
	list(file, (node, text) => console.log(`web/ui/${path.relative(work, name)}:${
		file.text.slice(0, node.getStart()).split('\n').length}: ${JSON.stringify(text).slice(1, -1)}`));
}
api.close();

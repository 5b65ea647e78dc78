// SPDX-License-Identifier: Apache-2.0
// Splits terminal lines into coloured pieces. Escape sequences for colour and weight are interpreted; all others are
// dropped.

interface Piece {
	text: string;
	/** One of the 16 terminal colours (8 to 15: bright), or null for the default. */
	colour: number | null;
	bold: boolean;
}

const ESCAPE = /\x1b(?:\[([0-9;?]*)([ -/]*[@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;

type Look = Omit<Piece, 'text'>;

/** Applies a sequence of codes; 256-colour and true-colour codes are skipped with their arguments. */
function changed(look: Look, codes: readonly number[]): Look {
	let { colour, bold } = look;
	for (let i = 0; i < codes.length; i++) {
		const c = codes[i]!;
		if (c === 0) [colour, bold] = [null, false];
		else if (c === 1) bold = true;
		else if (c === 22) bold = false;
		else if (c >= 30 && c <= 37) colour = c - 30;
		else if (c >= 90 && c <= 97) colour = c - 82;
		else if (c === 39) colour = null;
		else if (c === 38 || c === 48) {
			if (c === 38 && codes[i + 1] === 5 && (codes[i + 2] ?? 99) < 16) colour = codes[i + 2]!;
			i += codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0;
		}
	}
	return { colour, bold };
}

export function piecesOf(line: string): Piece[] {
	const out: Piece[] = [];
	let look: Look = { colour: null, bold: false };
	let at = 0;
	const add = (text: string) => {
		// other control characters are not shown
		const clean = text.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, '');
		if (clean) out.push({ text: clean, ...look });
	};
	for (const m of line.matchAll(ESCAPE)) {
		add(line.slice(at, m.index));
		at = m.index + m[0].length;
		if (m[2] === 'm') look = changed(look, (m[1] || '0').split(';').map(Number));
	}
	add(line.slice(at));
	return out;
}

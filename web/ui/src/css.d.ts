// SPDX-License-Identifier: Apache-2.0
declare module '*.part.css' {
	const text: string;
	export default text;
}
declare module '*.css';
/** A table of schema/: of each macro the arguments of its lines. */
declare module '*.def' {
	const table: Readonly<Record<string, readonly (readonly string[])[]>>;
	export default table;
}

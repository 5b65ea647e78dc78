// SPDX-License-Identifier: Apache-2.0
// Icons: lines in a square of 16 units, in the colour of the text around them. None is shown without a label.

const PATHS = {
	experiments: 'M6 2h4M7 2v4L3.2 12.2A1.2 1.2 0 0 0 4.2 14h7.6a1.2 1.2 0 0 0 1-1.8L9 6V2M4.8 10h6.4',
	runs: 'M2 4h12M2 8h12M2 12h8',
	reports: 'M4 2h5l3 3v9H4zM9 2v3h3M6 8h4M6 11h4',
	models: 'M8 2l5.5 3v6L8 14l-5.5-3V5zM2.5 5L8 8l5.5-3M8 8v6',
	alerts: 'M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3zM6.5 14h3',
	trash: 'M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.6 9h5.8l.6-9',
	settings: 'M2 5h6M12 5h2M2 11h2M8 11h6M10 3.3v3.4M6 9.3v3.4',
	columns: 'M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10',
	views: 'M4.5 2.5h7v11L8 10.7l-3.5 2.8z',
	more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
	compare: 'M2.5 3h4.3v10H2.5zM9.2 3h4.3v10H9.2z',
	less: 'M9.5 4L5.5 8l4 4M13 4L9 8l4 4',
	tag: 'M2.5 2.5h5l6 6-5 5-6-6zM5.5 5.5h.01',
	move: 'M2 8h10M8.5 4.5L12 8l-3.5 3.5',
	archive: 'M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 9h3',
	download: 'M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10',
	eye: 'M1.5 8C3.5 4.7 5.6 3.6 8 3.6s4.5 1.1 6.5 4.4c-2 3.3-4.1 4.4-6.5 4.4S3.5 11.3 1.5 8z'
		+ 'M8 6.2a1.8 1.8 0 1 0 .01 0',
	only: 'M8 2.5a5.5 5.5 0 1 0 .01 0M8 6.2a1.8 1.8 0 1 0 .01 0',
	pin: 'M5.5 2.5h5M6.5 2.5v4L4 9.5h8L9.5 6.5v-4M8 9.5v4',
	close: 'M4 4l8 8M12 4l-8 8',
	menu: 'M2 4h12M2 8h12M2 12h12',
	down: 'M4.5 6.5L8 10l3.5-3.5',
	filter: 'M2 3h12L9.5 8.5V13l-3-1.5v-3z',
	ascend: 'M5 13V3M2.5 5.5L5 3l2.5 2.5M10 4h4M10 8h3M10 12h2',
	descend: 'M5 3v10M2.5 10.5L5 13l2.5-2.5M10 4h2M10 8h3M10 12h4',
	back: 'M14 8H4M7.5 4.5L4 8l3.5 3.5',
	edit: 'M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3z',
	copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
};

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
	return <svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d={PATHS[name]}
		/></svg>;
}

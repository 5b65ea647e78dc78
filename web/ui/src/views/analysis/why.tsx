// SPDX-License-Identifier: Apache-2.0
// Analysis of runs: parallel coordinates, scatter plot, pivot table, importance of params, and media side by side.
import type { ComponentChildren } from 'preact';
import { emptyPivot, emptyScatter } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { GroupHead } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { Importance } from './importance.tsx';
import { Parallel } from './parallel.tsx';
import { Pivot } from './pivot.tsx';
import { Scatter } from './scatter.tsx';
import './styles.ts';

const Media = lazy(() => import('../records/media.tsx').then((m) => m.Cards));
/** Maximum of runs with media side by side. */
const MEDIA_RUNS = 12;
const MEDIA = 'media:';

interface PartOptions {
	name: string;
	count: number | string;
	open: boolean;
	toggle: () => void;
	children: () => ComponentChildren;
}

function Part({ name, count, open, toggle, children }: PartOptions) {
	return (
		<section class="group" aria-label={name}>
			<GroupHead open={open} toggle={toggle} name={name} count={count} />
			{open && children()}
		</section>
	);
}

function MediaOfRuns() {
	const { groups } = s.view.value;
	const open = (groups[MEDIA] ?? 0) > 0;
	const runs = s.shown.value.slice(0, MEDIA_RUNS);
	return (
		<Part name="Media" count="of the runs in the charts, side by side" open={open}
			toggle={() => s.go({ groups: { ...groups, [MEDIA]: open ? 0 : 1 } })}>
			{() => <Media runs={runs} />}</Part>
	);
}

export function Why() {
	const { parallel, scatter, pivot, importance } = s.view.value;
	const runs = s.rows.value.length;
	const differ = s.split.value.differ.length;
	return (
		<>
			{runs > 1 && differ > 0 && <>
				<Part name="Params and goal" count={runs} open={parallel}
					toggle={() => s.go({ parallel: !parallel })}>{() => <Parallel />}</Part>
				<Part name="Scatter" count="any two columns" open={scatter !== null}
					toggle={() => s.go({ scatter: scatter ? null : emptyScatter })}>{() =>
						<Scatter />}</Part>
				<Part name="Pivot" count="two params as rows and columns" open={pivot !== null}
					toggle={() => s.go({ pivot: pivot ? null : emptyPivot })}>{() =>
						<Pivot />}</Part>
				{s.goal.value && <Part name="Importance" count={`of ${differ} params for the goal`}
					open={importance}
					toggle={() => s.go({ importance: !importance })}>{() => <Importance />}</Part>}
			</>}
			<MediaOfRuns />
		</>
	);
}

// SPDX-License-Identifier: Apache-2.0
// A button that makes a figure of a chart outside of the grid.
import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import type { LineChart } from '../../charts/line/index.ts';
import { lazy } from '../base/lazy.tsx';

const FigureDialog = lazy(() => import('./figuredialog.tsx').then((m) => m.FigureDialog));

export function FigureButton({ chart, name }: { chart: RefObject<LineChart | null>; name: string }) {
	const open = useSignal(false);
	return (
		<><button type="button" class="quiet" data-here aria-label={`Figure of ${name}`} title="Make a figure"
			onClick={() => (open.value = chart.current?.data != null)}>Figure</button>
			{open.value && <FigureDialog of={chart.current} metric="" name={name}
				close={() => (open.value = false)} />}</>
	);
}

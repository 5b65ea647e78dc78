// SPDX-License-Identifier: Apache-2.0
// Model versions registered from a run.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { emptyView } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { versionsOf } from '../../state/saved/registry.ts';
import { parts, Str } from '../../strings/en.ts';
import { followed } from '../base/bits.tsx';

export function Registered({ id }: { id: string }) {
	const list = useSignal<Awaited<ReturnType<typeof versionsOf>>>([]);
	useEffect(() => {
		let here = true;
		versionsOf(id).then((l) => here && (list.value = l), s.report);
		return () => void (here = false);
	}, [id]);
	if (!list.value.length) return null;
	return (
		<section class="box">
			<h2>{Str.RegisteredAs}</h2>
			<ul class="files">{list.value.map((v) => {
				const to = { ...emptyView, page: 'models' as const, model: v.name };
				return <li key={v.name + v.version}><a href={s.addressOf(to)}
					onClick={followed(() => s.go(to, true))}>{v.name}</a> {parts(Str.versionX,
						v.version)}</li>;
			})}</ul>
		</section>
	);
}

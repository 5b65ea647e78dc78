// SPDX-License-Identifier: Apache-2.0
// Address of a model's page; '' for the list. The experiment of the view stays.
import { emptyView, type View } from '../../base/url.ts';
import { experiment } from '../../state/index.ts';

export function pageOf(model: string): Partial<View> {
	return { ...emptyView, experiment: experiment.value, page: 'models', model };
}

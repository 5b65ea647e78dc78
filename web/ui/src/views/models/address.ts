// SPDX-License-Identifier: Apache-2.0
// Address of a model's page; '' for the list.
import { emptyView, type View } from '../../base/url.ts';

export function pageOf(model: string): Partial<View> {
	return { ...emptyView, page: 'models', model };
}

// Where the page of a model is; '' for that of all.
import { emptyView, type View } from '../../base/url.ts';

export function pageOf(model: string): Partial<View> {
	return { ...emptyView, page: 'models', model };
}

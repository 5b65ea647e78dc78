// SPDX-License-Identifier: Apache-2.0
// The help on keys is open.
import { signal } from '@preact/signals';

export const asking = signal(false);

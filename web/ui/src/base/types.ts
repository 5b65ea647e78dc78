// SPDX-License-Identifier: Apache-2.0
// Types of decoded REST replies and of data derived from them. Needs no browser, sends no requests.

/** Summary of a run-level series. Non-finite values are numbers here, not strings. */
export interface Metric {
	count: number;
	first: number;
	last: number;
	min: number | null;
	max: number | null;
	first_step: number;
	last_step: number;
	min_step: number | null;
	max_step: number | null;
	first_nonfinite_step?: number | null;
}

type AlertKind = 'spike' | 'nan' | 'failed' | 'diverged';

/** An alert of a run; key and step locate it in the charts. */
export interface Alert {
	kind: AlertKind;
	key: string | null;
	step: number | null;
	value: number | null;
	text: string;
}

export type Status = 'running' | 'finished' | 'failed' | 'killed' | 'preempted' | 'scheduled';

export interface Run {
	id: string;
	name: string;
	experiment: string;
	status: Status;
	start_time: number | null;
	end_time: number | null;
	params: Record<string, string>;
	tags: Record<string, string>;
	metrics: Record<string, Metric>;
	notes: string;
	/** Of a run that was read alone. */
	notes_etag: string;
	/** Why it ended, as its program said, or ''. */
	reason: string;
	alerts: Alert[];
	/** Last optimiser step over all series; null without any. */
	last_step: number | null;
	deleted: boolean;
	deleted_time: number | null;
}

export interface RunDetail extends Run {
	environment: Record<string, string>;
	ranks: number[];
	/** Milliseconds from its first to its last point; null without any. */
	span: number | null;
	segments: { segment: number; first_step: number | null }[];
	/** User, as MLflow's client recorded it, or ''. */
	user: string;
	/** Who made it, who edited it last and when, as far as known. */
	by: string;
	editor: string;
	edited: number|null;
	/** Input data sets. */
	inputs: Input[];
	/** Errors of its journals, in words. */
	problems: string[];
	/** Number of files in the topmost folder. */
	artifacts: Artifact[];
}

interface Input {
	name: string;
	digest: string;
	/** Context: training, … */
	context: string;
	source: string;
	/** JSON of its sizes, or ''. */
	profile: string;
}

export interface Artifact {
	/** Path relative to the run's folder. */
	path: string;
	folder: boolean;
	bytes: number | null;
	/** Present if requested and known. */
	sha256: string | null;
}

export interface Experiment {
	id: string;
	name: string;
	run_count: number;
	running_count: number;
	failed_count: number;
	/** Markdown. */
	description: string;
	/** Archived, but not deleted. */
	archived: boolean;
	last_time: number | null;
	/** What the session may do in it: read, write or admin. */
	may: string;
}

/** Columns of one series in buckets, as the server sends them. min or max is null if nothing is comparable. A first or
 * last value that is null or non-finite cannot be drawn. */
export interface BucketColumns {
	i: number[];
	x_first: (number | null)[];
	first: (number | null)[];
	x_min: (number | null)[];
	min: (number | null)[];
	x_max: (number | null)[];
	max: (number | null)[];
	x_last: (number | null)[];
	last: (number | null)[];
	sum: (number | null)[];
	count: number[];
	nonfinite: number[];
	/** x of the bucket's first non-finite point, if present. */
	x_nonfinite?: (number | null)[];
}

/** A number as difference to the previous one in units, as text, or missing. */
export type Coded = number | string | null;

/** The drawn points of a series, as the server sends them (web/api/native/native_inside.h). */
export interface LineColumns {
	xq: number;
	q: number;
	x: Coded[];
	y: Coded[];
	k?: number[];
	m?: Coded[];
	w?: number[];
}

/** A series ready to draw. xs and ys contain the first, min, max and last point of every bucket, sorted by x; ys is NaN
 * where the line breaks. mx, mean and weight have one entry per bucket, for smoothing. */
export interface Series {
	run: string;
	key: string;
	rank: number;
	count: number;
	xs: number[];
	ys: number[];
	mx: number[];
	mean: number[];
	weight: number[];
	/** The values are exact to this unit; absent: in full precision. */
	unit?: number;
	/** x of the first non-finite point, or null. */
	badX: number | null;
	/** True if no finite point follows badX. */
	badToEnd: boolean;
}

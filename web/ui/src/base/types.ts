// What the REST replies hold once decoded, and what the page derives from it. No browser, no fetch here.

/** Summary of one visible run-level series. Non-finite numbers are real numbers here, not strings. */
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

/** Something about a run that a reader must see in words; key and step say where in the charts. */
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
	alerts: Alert[];
	/** Of the series that count optimiser steps; null without any. */
	last_step: number | null;
	deleted: boolean;
}

export interface RunDetail extends Run {
	environment: Record<string, string>;
	ranks: number[];
	segments: { segment: number; first_step: number | null }[];
	/** Who ran it, as MLflow's client says; ''. */
	user: string;
	/** Data sets that it read. */
	inputs: Input[];
	/** What could not be applied of its journals, in words. */
	problems: string[];
	/** Of the topmost folder. */
	artifacts: Artifact[];
}

interface Input {
	name: string;
	digest: string;
	/** What it was read for: training, … */
	context: string;
	source: string;
	/** JSON of its sizes, or empty. */
	profile: string;
}

export interface Artifact {
	/** From the run's folder on. */
	path: string;
	folder: boolean;
	bytes: number | null;
	/** Where digests were asked for and it is known. */
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
	/** Put away, still whole. */
	archived: boolean;
	last_time: number | null;
}

/**
 * Columns of one series in buckets, as the server sends them. A min or max is null where nothing is comparable; a
 * first or last that is null or not finite stands for a point that cannot be drawn.
 */
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
	/** x of the bucket's first point that is not finite, where the server says it. */
	x_nonfinite?: (number | null)[];
}

/** A number as the difference from the one before it in units, by itself as text, or none. */
export type Coded = number | string | null;

/** The points that are drawn of one series, as the server sends them (web/api/native/series_line.h). */
export interface LineColumns {
	xq: number;
	q: number;
	x: Coded[];
	y: Coded[];
	k?: number[];
	m?: Coded[];
	w?: number[];
}

/**
 * One series ready to draw. xs/ys walk through every bucket in the order of x and visit its first, min, max and last
 * point; ys is NaN where the line must break. mx/mean/weight hold one entry per bucket, for smoothing.
 */
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
	/** x of the first point that is not finite, or null. */
	badX: number | null;
	/** True when nothing finite follows badX. */
	badToEnd: boolean;
}

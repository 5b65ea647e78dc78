// What need not be there in the first frame of something.

/** Does it once the next frame has been drawn; returns what takes that back. */
export function afterFrame(act: () => void): () => void {
	let timer = 0;
	const frame = requestAnimationFrame(() => (timer = window.setTimeout(act)));
	return () => {
		cancelAnimationFrame(frame);
		clearTimeout(timer);
	};
}

// Random choices that can be repeated: HF_SEED sets the seed, and the tests that use it print it.

export const seed = Number(process.env.HF_SEED || Date.now() % 1_000_000);

export function seededRandom(start = seed) {
  let state = start;
  const below = (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 4294967296 * limit);
  };
  const oneOf = (list) => list[below(list.length)];
  return {
    below,
    oneOf,
    sample: (list, count) => (list.length <= count ? list : Array.from({ length: count }, () => oneOf(list))),
  };
}

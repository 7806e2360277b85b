// Chance that can be had again: HF_SEED, printed by the tests that use it.

export const seed = Number(process.env.HF_SEED || Date.now() % 1_000_000);

export function chance(start = seed) {
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

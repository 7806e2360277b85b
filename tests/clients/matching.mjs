// How scenarios name what they saved and what they expect.

// Returns the member of a value that `path` names, such as `holders.0.fence`; the value itself for ''.
export function member(value, path) {
  return path === '' ? value : path.split('.').reduce((found, name) => found?.[name], value);
}

// Returns `value` with "$name" and "$name.member" replaced by what was saved, and "${name}" within longer strings.
export function fill(value, saved) {
  if (Array.isArray(value)) return value.map((each) => fill(each, saved));
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [fillText(key, saved), fill(each, saved)]));
  }
  if (typeof value !== 'string') return value;
  const [, whole] = /^\$([a-z_0-9.]+)$/i.exec(value) ?? [];
  return whole ? found(whole, saved) : fillText(value, saved);
}

const fillText = (text, saved) => text.replaceAll(/\$\{([a-z_0-9.]+)\}/gi, (all, name) => found(name, saved));

function found(path, saved) {
  const [name] = path.split('.');
  if (!(name in saved)) throw new Error(`nothing was saved as ${name}`);
  return member(saved, path);
}

const show = (value) => (value === undefined ? 'nothing' : JSON.stringify(value));
const typeOf = (value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

const MATCHERS = {
  $type: (actual, type) => typeOf(actual) === type,
  $gt: (actual, least) => typeof actual === 'number' && actual > least,
  $gte: (actual, least) => typeof actual === 'number' && actual >= least,
  $lt: (actual, most) => typeof actual === 'number' && actual < most,
  $match: (actual, pattern) => typeof actual === 'string' && new RegExp(pattern).test(actual),
  $any: (actual, choices) => choices.some((choice) => differences(actual, choice).length === 0),
  $not: (actual, other) => differences(actual, other).length > 0,
  $absent: (actual) => actual === undefined || actual === null,
  $length: (actual, length) => differences(actual?.length, length).length === 0,
  $contains: (actual, element) => Array.isArray(actual) && actual.some((each) => differences(each, element).length === 0),
};

// Returns how a value differs from what is expected of it, as sentences; [] if it does not.  An object may have more
// members than are expected, an array may not have more elements.
export function differences(actual, expected, where = 'the value') {
  const isObject = expected !== null && typeof expected === 'object' && !Array.isArray(expected);
  const matchers = isObject ? Object.keys(expected).filter((key) => key.startsWith('$')) : [];
  if (matchers.length > 0) {
    return matchers.filter((key) => !MATCHERS[key](actual, expected[key]))
      .map((key) => `${where} is ${show(actual)}, which is not {"${key}":${show(expected[key])}}`);
  }
  if (isObject && typeOf(actual) === 'object') {
    return Object.keys(expected).flatMap((key) => differences(actual[key], expected[key], `${where}.${key}`));
  }
  if (Array.isArray(expected) && Array.isArray(actual) && actual.length === expected.length) {
    return expected.flatMap((each, i) => differences(actual[i], each, `${where}[${i}]`));
  }
  return Object.is(actual, expected) ? [] : [`${where} is ${show(actual)}, not ${show(expected)}`];
}

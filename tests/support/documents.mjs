// The code of documents.  The tests run the blocks of a page as one program, from the top, and compare what each block prints
// with the ```text block behind it.
//
//   const tour = blocks(page, 'js');
//   const run = launch('node', ['-e', program(tour)]);
//   await run.done;
//   assert.equal(differences(tour, run.stdout), '');

import assert from 'node:assert/strict';

const MARK = '@@@ block';
const SAY = {
  sh: (n) => `echo; echo "${MARK} ${n}"`,
  js: (n) => `console.log('\\n${MARK} ${n}');`,
  python: (n) => `print("\\n${MARK} ${n}", flush=True)`,
};

// Returns [{ line, language, code, expected }] for each block in this language.  `expected` is the ```text block that follows
// at once, or after the same in other languages; `…` in it stands for any text.
export function blocks(text, language = 'sh') {
  const found = [];
  let together = []; // blocks without anything between them
  let end;
  for (const match of text.matchAll(/^```(sh|js|python|text)\n([\s\S]*?)^```\n/gm)) {
    const line = text.slice(0, match.index).split('\n').length;
    if (match.index !== end) together = [];
    end = match.index + match[0].length;
    if (match[1] === 'text') {
      assert.ok(together.length > 0, `line ${line}: a text block without a command`);
      for (const block of together) block.expected = match[2];
      together = [];
    } else {
      together.push({ line, language: match[1], code: match[2] });
      found.push(together.at(-1));
    }
  }
  return found.filter((block) => block.language === language);
}

// Returns a program of these blocks, one after the other, which says where the output of each begins.
export const program = (tour) => tour.map(({ language, code }, n) => `${SAY[language](n)}\n${code}`).join('');

// Returns what each block printed.
export const outputs = (stdout) => stdout.split(`\n${MARK} `).slice(1).map((text) => text.slice(text.indexOf('\n') + 1).trimEnd());

const pattern = (expected) => new RegExp(`^${expected.trimEnd().split('…')
  .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^\\n]*?')}$`);

// Returns a text about the blocks that printed something else than the page shows; '' if none did.
export function differences(tour, stdout) {
  const printed = outputs(stdout);
  return tour.map(({ line, expected }, n) => ({ line, expected, output: printed[n] ?? '(never run)' }))
    .filter(({ expected, output }) => expected !== undefined && !pattern(expected).test(output))
    .map(({ line, expected, output }) => `line ${line}:\n${output}\ninstead of\n${expected}`).join('\n');
}

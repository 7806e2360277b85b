// The objects that the payment sandbox sends are those that the types of Stripe's official client describe: nothing
// that they require is missing, nothing has another type, and nothing is there that they do not know.  The TypeScript
// compiler judges: each object becomes a literal in a program, and the compiler must have nothing to say.
// backends: own

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { reap, until } from '../support/server.mjs';
import { startSandbox } from '../support/sandbox.mjs';

const types = fileURLToPath(new URL('../node_modules/stripe/esm/resources', import.meta.url));
const paying = { amount: 2500, currency: 'usd', payment_method_types: ['card'], confirm: true, metadata: { a: 'b' } };

const literals = []; // { title, type, value }
const add = (title, type, value) => literals.push({ title, type, value });

// Objects in all of their states, expanded and not.
async function collect(stripe) {
  const intents = stripe.paymentIntents;
  add('a new intent', 'PaymentIntent', await intents.create({ amount: 2500, currency: 'usd', automatic_payment_methods: { enabled: true }, description: 'x', receipt_email: 'a@example.test' }));
  const refused = await intents.create({ ...paying, payment_method: 'pm_card_chargeDeclined' }).catch((error) => error);
  add('a declined intent', 'PaymentIntent', refused.payment_intent);
  add('the method of a declined intent', 'PaymentMethod', refused.payment_method);
  add('a failed charge', 'Charge', await stripe.charges.retrieve(refused.payment_intent.latest_charge));
  add('an intent that requires an action', 'PaymentIntent', await intents.create({ ...paying, payment_method: 'pm_card_authenticationRequired', return_url: 'https://shop.example/' }));
  const held = await intents.create({ ...paying, payment_method: 'pm_card_visa', capture_method: 'manual' });
  add('an intent that requires a capture', 'PaymentIntent', held);
  add('a canceled intent', 'PaymentIntent', await intents.cancel(held.id, { cancellation_reason: 'abandoned' }));
  const paid = await intents.create({ ...paying, payment_method: 'pm_card_refundFail' });
  const refund = await stripe.refunds.create({ payment_intent: paid.id, amount: 100, reason: 'duplicate', expand: ['charge', 'payment_intent'] });
  add('an expanded refund', 'Refund', refund);
  add('a paid intent, expanded', 'PaymentIntent', await intents.retrieve(paid.id, { expand: ['latest_charge.refunds', 'payment_method'] }));
  add('a refund that failed', 'Refund', await until('the refund fails', async () => {
    const now = await stripe.refunds.retrieve(refund.id);
    return now.status === 'failed' && now;
  }));
  const { latest_charge: charge } = await intents.create({ ...paying, payment_method: 'pm_card_createDispute' });
  add('a charge, expanded', 'Charge', await stripe.charges.retrieve(charge, { expand: ['payment_intent', 'refunds'] }));
  const [dispute] = await until('the dispute comes', async () => {
    const { data } = await stripe.disputes.list();
    return data.length > 0 && data;
  });
  add('a dispute', 'Dispute', dispute);
  add('the balance', 'Balance', await stripe.balance.retrieve());
  const { data } = await stripe.events.list({ limit: 100 });
  assert.ok(new Set(data.map(({ type }) => type)).size >= 12);
  const classes = { payment_intent: 'PaymentIntent', charge: 'Charge', refund: 'Refund', dispute: 'Dispute' };
  for (const event of data) {
    add(`the event ${event.type}`, 'EventBase', { ...event, data: { object: {} } });
    add(`the object of ${event.type}`, classes[event.data.object.object], event.data.object);
  }
}

const files = { PaymentIntent: 'PaymentIntents', PaymentMethod: 'PaymentMethods', Charge: 'Charges', Refund: 'Refunds', Dispute: 'Disputes', Balance: 'Balance', EventBase: 'Events' };

// The compiler's findings, by the number of the literal.
function judge() {
  const imports = Object.entries(files).map(([type, file]) => `import type { ${type} } from '${types}/${file}.js';`);
  const lines = literals.map(({ type, value }, n) => `export const literal${n}: ${type} = ${JSON.stringify(value)};`);
  const name = path.join(types, 'sandbox-literals.ts'); // in memory only
  const text = [...imports, ...lines].join('\n');
  const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (file) => file === name || fileExists(file);
  host.getSourceFile = (file, ...rest) => (file === name ? ts.createSourceFile(file, text, ts.ScriptTarget.Latest) : getSourceFile(file, ...rest));
  const program = ts.createProgram([name], options, host);
  const source = program.getSourceFile(name);
  const found = new Map();
  for (const finding of [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]) {
    const { line } = source.getLineAndCharacterOfPosition(finding.start);
    const message = ts.flattenDiagnosticMessageText(finding.messageText, '\n');
    found.set(line - imports.length, [...(found.get(line - imports.length) ?? []), message]);
  }
  return found;
}

describe('the types of the official client', () => {
  let findings;
  before(async () => {
    const sandbox = await startSandbox({ args: ['--faults', '{"later_ms":50}'] });
    await collect(sandbox.client());
    await sandbox.stop();
    // These two must be found, or the compiler has judged nothing.
    const [{ value }] = literals;
    add('missing', 'PaymentIntent', { ...value, amount: undefined });
    add('wrong', 'PaymentIntent', { ...value, created: '2026' });
    findings = judge();
  });
  after(reap);

  it('describe every object that the sandbox sends', () => {
    const wrong = literals.map(({ title }, n) => ({ title, messages: findings.get(n) })).slice(0, -2).filter(({ messages }) => messages);
    assert.deepEqual(wrong, []);
    assert.ok(!findings.has(-1) && literals.length > 30);
  });

  it('would not describe a member that is missing, or one of another type', () => {
    assert.ok(findings.has(literals.length - 2));
    assert.ok(findings.has(literals.length - 1));
  });
});

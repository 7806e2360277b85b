// Compares answers with docs/openapi.yaml.
//
//   const document = await Document.load();
//   document.check('createHold', answer);      // throws if the answer is not as documented
//
// ajv is the validator that most others build on.  It supports JSON Schema 2020-12, the basis of OpenAPI 3.1,
// so the schemas are used unchanged, in strict mode: a misspelled keyword is an error.
// @seriousme/openapi-schema-validator validates the document against OpenAPI's own meta schema, and depends
// only on the same ajv.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import YAML from 'yaml';

export const PATH = new URL('../../docs/openapi.yaml', import.meta.url);
export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

// Headers with a meaning: the document must mention them for every answer that has one.
const TELLING = ['etag', 'location', 'retry-after', 'www-authenticate', 'idempotency-replayed', 'holdfast-stale'];

const isObject = (value) => typeof value === 'object' && value !== null;

// Clients must tolerate new fields; the tests must not, or the document would fall behind.
function close(node) {
  if (!isObject(node)) return;
  if (node.type === 'object' && node.properties && node.additionalProperties === undefined) {
    node.additionalProperties = false;
  }
  Object.values(node).forEach(close);
}

function rewriteRefs(node) {
  if (!isObject(node)) return;
  if (typeof node.$ref === 'string') node.$ref = node.$ref.replace(/^#/, '#/api');
  Object.values(node).forEach(rewriteRefs);
}

// Calls `visit(node, pointer)` for every object of a document.
function walk(node, visit, pointer = '') {
  if (!isObject(node)) return;
  visit(node, pointer);
  for (const [key, each] of Object.entries(node)) walk(each, visit, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}

export class Document {
  static async load() { return new Document(fs.readFileSync(PATH, 'utf8')); }

  constructor(text) {
    this.text = text;
    this.api = YAML.parse(text, { strict: true, uniqueKeys: true });
    this.operations = new Map();
    for (const [path, item] of Object.entries(this.api.paths)) {
      for (const method of METHODS.filter((name) => item[name])) {
        const operation = item[method];
        assert.ok(!this.operations.has(operation.operationId), `${operation.operationId} is there twice`);
        this.operations.set(operation.operationId, {
          ...operation, path, method: method.toUpperCase(),
          parameters: [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((p) => this.resolve(p)),
        });
      }
    }
    this.ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false, allErrors: true });
    addFormats(this.ajv);
    // One schema of all: ajv compiles what is referred to once for each schema that it is given.
    const all = structuredClone(this.api);
    close(all);
    rewriteRefs(all);
    this.ajv.addVocabulary(['api']);
    this.ajv.addSchema({ $id: 'document', api: all });
    this.ajv.validateSchema({ $defs: all.components.schemas }, true);
    this.pointers = new Map();
    walk(this.api, (node, pointer) => this.pointers.set(node, pointer));
    this.compiled = new Map();
    this.seen = new Set(); // `operationId status`, and `operationId event` of streams
  }

  // Returns what OpenAPI's meta schema objects to in the document; an empty text if nothing.
  async faults() {
    const result = await new Validator().validate(structuredClone(this.api));
    return result.valid ? [] : [].concat(result.errors);
  }

  // Returns the components that nothing in the document refers to.
  unused() {
    const used = new Set(this.text.match(/#\/components\/\w+\/[\w-]+/g));
    return Object.entries(this.api.components).filter(([kind]) => kind !== 'securitySchemes')
      .flatMap(([kind, named]) => Object.keys(named).map((name) => `#/components/${kind}/${name}`))
      .filter((name) => !used.has(name));
  }

  resolve(node) {
    let found = node;
    while (isObject(found) && found.$ref?.startsWith('#/components/')
        && !found.$ref.startsWith('#/components/schemas/')) {
      found = found.$ref.slice(2).split('/').reduce((at, key) => at?.[key], this.api);
      assert.ok(found, `${node.$ref} leads nowhere`);
    }
    return found;
  }

  // Follows references to schemas, too.
  resolveSchema(schema) {
    let found = schema;
    while (isObject(found) && found.$ref) found = found.$ref.slice(2).split('/').reduce((at, key) => at?.[key], this.api);
    return isObject(found) ? found : {};
  }

  // Compiles a schema of the document to a function that returns what is wrong with a value, or null.
  validator(schema) {
    if (Object.keys(schema).join() === '$ref') return this.validator(this.resolveSchema(schema));
    if (!this.compiled.has(schema)) {
      const pointer = this.pointers.get(schema);
      assert.notEqual(pointer, undefined, 'a schema of another document');
      this.ajv.validateSchema(schema, true);
      const validate = this.ajv.getSchema(`document#/api${encodeURI(pointer)}`);
      this.compiled.set(schema, (value) => (validate(value) ? null : this.ajv.errorsText(validate.errors)));
    }
    return this.compiled.get(schema);
  }

  schema(name) { return this.validator(this.api.components.schemas[name]); }

  operation(id) {
    const operation = this.operations.get(id);
    assert.ok(operation, `the document has no operation ${id}`);
    return operation;
  }

  // Returns the scope that an operation needs: 'public', 'seller' or 'admin'.
  scope(id) {
    const { security } = this.operation(id);
    assert.ok(Array.isArray(security) && security.length > 0, `${id} does not say who may`);
    return security.some((entry) => Object.keys(entry).length === 0) ? 'public' : security[0].bearerAuth[0];
  }

  // Returns the path of a request with its parameters filled in; throws if one is missing or unused.
  target(id, parameters = {}) {
    const { path, parameters: declared } = this.operation(id);
    let target = path;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      const parameter = declared.find((p) => p.name === name && p.in !== 'header');
      assert.ok(parameter, `${id} has no parameter ${name}`);
      if (parameter.in === 'path') target = target.replace(`{${name}}`, encodeURIComponent(value));
      else query.set(name, value);
    }
    assert.ok(!target.includes('{'), `${id}: ${target}`);
    return query.size ? `${target}?${query}` : target;
  }

  // Asserts that a request that succeeded was a documented one.
  checkRequest(id, body) {
    const { requestBody } = this.operation(id);
    const declared = this.resolve(requestBody);
    if (body === undefined) return assert.ok(!declared?.required, `${id} needs a body`);
    assert.ok(declared, `${id} takes no body`);
    const fault = this.validator(declared.content['application/json'].schema)(body);
    return assert.equal(fault, null, `${id} took ${JSON.stringify(body)}`);
  }

  check(id, answer) {
    const { status } = answer;
    const what = `${id} ${status}`;
    const response = this.resolve(this.operation(id).responses[status]);
    assert.ok(response, `${what} is not documented: ${answer.text?.slice(0, 500)}`);
    this.checkHeaders(what, response.headers ?? {}, answer.headers);
    this.checkBody(what, response.content, answer);
    this.seen.add(what);
    return answer;
  }

  // Returns the kinds of server-sent events that an operation's answer has, by `event`: schemas of their data.
  messages(id) {
    const stream = this.resolve(this.operation(id).responses[200])?.content?.['text/event-stream'];
    if (!stream) return new Map();
    return new Map(this.resolveSchema(stream.schema).items.oneOf.flatMap(({ properties: { event, data } }) =>
      (event.enum ?? [event.const]).map((name) => [name, data.contentSchema])));
  }

  // Compares a server-sent event { id, event, data } with the document; `data` is parsed.
  checkMessage(id, { id: at, event, data }) {
    const what = `${id} ${event}`;
    const { items } = this.resolveSchema(this.resolve(this.operation(id).responses[200]).content['text/event-stream'].schema);
    const fields = { ...(at === undefined ? {} : { id: at }), event, data: JSON.stringify(data) };
    assert.equal(this.validator(items)(fields), null, `${what}: ${JSON.stringify(fields)}`);
    assert.equal(this.validator(this.messages(id).get(event))(data), null, `${what}: ${fields.data}`);
    this.seen.add(what);
  }

  checkHeaders(what, documented, headers) {
    for (const [name, ref] of Object.entries(documented)) {
      const header = this.resolve(ref);
      const value = headers[name.toLowerCase()];
      assert.ok(value !== undefined || !header.required, `${what}: ${name} is missing`);
      if (value === undefined) continue;
      assert.equal(this.validator(header.schema)(value), null, `${what}: ${name}: ${value}`);
    }
    const names = Object.keys(documented).map((name) => name.toLowerCase());
    for (const name of TELLING.filter((one) => headers[one] !== undefined)) {
      assert.ok(names.includes(name), `${what}: ${name} is not documented`);
    }
  }

  checkBody(what, content, answer) {
    const type = (answer.headers['content-type'] ?? '').split(';')[0];
    if (!content) {
      assert.equal(type, '', `${what}: a body of ${type} is not documented`);
      return assert.equal(answer.text, '', what);
    }
    assert.ok(content[type], `${what}: ${type || 'no type'} is not documented`);
    if (answer.json === undefined) return undefined;
    const fault = this.validator(content[type].schema)(answer.json);
    return assert.equal(fault, null, `${what}: ${answer.text.slice(0, 2000)}`);
  }

  // Returns [{ id, where, value, fault }] for every example that stands beside a schema.
  * examples() {
    for (const [id, operation] of this.operations) {
      const bodies = [this.resolve(operation.requestBody),
        ...Object.values(operation.responses).map((response) => this.resolve(response))];
      for (const body of bodies.filter(Boolean)) {
        for (const [type, media] of Object.entries(body.content ?? {})) {
          for (const [name, ref] of Object.entries(media.examples ?? {})) {
            const { value } = this.resolve(ref);
            yield { id, where: `${id} ${type} ${name}`, value, fault: this.validator(media.schema)(value) };
          }
        }
      }
    }
  }
}

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { type RegisterFinding, RegisterValidator, readRegisterFile } from '../../src/register/validate.ts';
import { pagegate } from '../support/program.ts';

/** The fields that the specification requires, and nothing else. */
const SMALLEST = {
  agent_id: 'AG-0001',
  agent_name: 'Scout',
  purpose: 'Compares public price lists',
  owner: 'Ada Example',
  status: 'production',
  agency_tier: 2,
  review_by: '2027-01-31',
};

const FULL = {
  ...SMALLEST,
  agent_id: 'AG-123456',
  team: 'Procurement',
  risk_score: 0,
  risk_band: 'low',
  tools_and_mcp_servers: ['browser', 'search'],
  credentials: 'svc-scout',
  credential_lifetime: '15m',
  data_classes: [],
  web_policy_file: 'policies/scout.json',
  unclassified_destinations: 'allow_reads',
  exceptions: [
    { page_type: 'login', domain: 'example.com', expires: '2026-12-31' },
    { page_type: 'checkout', domain: 'example.org', expires: '2028-02-29', requires_approval: true },
  ],
  hosted_by: 'in-house',
  model: 'a model',
  last_assessed: '2026-06-30',
  decision_log_location: 's3://logs/scout',
  retired_on: null,
  notes: '',
};

function findingsFor(text: string | Uint8Array): readonly RegisterFinding[] {
  const validator = new RegisterValidator();
  validator.add('agents.json', typeof text === 'string' ? new TextEncoder().encode(text) : text);
  return validator.report().findings;
}

const errorsFor = (text: string): readonly RegisterFinding[] => findingsFor(text).filter((f) => f.severity === 'error');
const changed = (change: object): string => JSON.stringify({ ...FULL, ...change });
const exception = (change: object): string =>
  changed({ exceptions: [{ page_type: 'login', domain: 'example.com', expires: '2026-12-31', ...change }] });

describe('spec 2.5: the contents of a register entry', () => {
  it.each([
    ['the required fields alone', SMALLEST],
    ['every field', FULL],
    ['four digits and more in agent_id', { ...FULL, agent_id: 'AG-00000000001' }],
    ...['250ms', '90s', '15m', '8 h', '7d', '2w'].map((v) => [
      `a lifetime of ${v}`,
      { ...FULL, credential_lifetime: v },
    ]),
    ['a name of one character', { ...FULL, agent_name: 'X' }],
    ['a purpose of ten characters', { ...FULL, purpose: '0123456789' }],
    ['tier 1', { ...FULL, agency_tier: 1 }],
    ['tier 4', { ...FULL, agency_tier: 4 }],
    ['risk 100', { ...FULL, risk_score: 100 }],
    ['retired on a day', { ...FULL, status: 'retired', retired_on: '2026-10-01' }],
    ['no exceptions', { ...FULL, exceptions: [] }],
    ...['proposed', 'pilot', 'production', 'paused', 'retired'].map((v) => [`status ${v}`, { ...FULL, status: v }]),
    ...['low', 'moderate', 'high', 'critical'].map((v) => [`risk band ${v}`, { ...FULL, risk_band: v }]),
    ...['deny', 'allow_reads'].map((v) => [`unclassified ${v}`, { ...FULL, unclassified_destinations: v }]),
    ...['in-house', 'vendor'].map((v) => [`hosted ${v}`, { ...FULL, hosted_by: v }]),
  ] as [string, object][])('accepts %s', (_name, entry) => {
    expect(findingsFor(JSON.stringify(entry))).toEqual([]);
  });

  const strings = ['agent_name', 'purpose', 'owner', 'team', 'credentials', 'credential_lifetime', 'web_policy_file'];
  const moreStrings = ['model', 'decision_log_location', 'notes', 'status', 'hosted_by', 'agent_id', 'risk_band'];
  it.each([
    ...['agent_id', 'agent_name', 'purpose', 'owner', 'status', 'agency_tier', 'review_by'].map((name) => [
      `${name} missing`,
      changed({ [name]: undefined }),
      name,
    ]),
    ...[...strings, ...moreStrings].map((name) => [`${name} no string`, changed({ [name]: 7 }), name]),
    ...['review_by', 'last_assessed', 'retired_on'].flatMap((name) => [
      [`${name} not a date`, changed({ [name]: 'soon' }), name],
      [`${name} no day of the calendar`, changed({ [name]: '2026-02-30' }), name],
      [`${name} with a time`, changed({ [name]: '2026-02-03T00:00:00Z' }), name],
      [`${name} without leading zeros`, changed({ [name]: '2026-2-3' }), name],
    ]),
    ['null for a date that must be one', changed({ review_by: null }), 'review_by'],
    ['three digits', changed({ agent_id: 'AG-001' }), 'agent_id'],
    ['lower case in agent_id', changed({ agent_id: 'ag-0001' }), 'agent_id'],
    ['text around agent_id', changed({ agent_id: ' AG-0001' }), 'agent_id'],
    ['a line feed after agent_id', changed({ agent_id: 'AG-0001\n' }), 'agent_id'],
    ['an empty name', changed({ agent_name: '' }), 'agent_name'],
    ['a purpose of nine characters', changed({ purpose: '012345678' }), 'purpose'],
    ['another status', changed({ status: 'active' }), 'status'],
    ['a status in upper case', changed({ status: 'Pilot' }), 'status'],
    ['tier 0', changed({ agency_tier: 0 }), 'agency_tier'],
    ['tier 5', changed({ agency_tier: 5 }), 'agency_tier'],
    ['tier 2.5', changed({ agency_tier: 2.5 }), 'agency_tier'],
    ['a tier as text', changed({ agency_tier: '2' }), 'agency_tier'],
    ['risk -1', changed({ risk_score: -1 }), 'risk_score'],
    ['risk 101', changed({ risk_score: 101 }), 'risk_score'],
    ['another risk band', changed({ risk_band: 'medium' }), 'risk_band'],
    ['another hosting', changed({ hosted_by: 'cloud' }), 'hosted_by'],
    ['another rule for the unclassified', changed({ unclassified_destinations: 'allow' }), 'unclassified_destinations'],
    ['tools as text', changed({ tools_and_mcp_servers: 'browser' }), 'tools_and_mcp_servers'],
    ['a tool that is not a text', changed({ tools_and_mcp_servers: ['a', 1] }), 'tools_and_mcp_servers[1]'],
    ['a data class that is not a text', changed({ data_classes: [null] }), 'data_classes[0]'],
    ['exceptions as an object', changed({ exceptions: {} }), 'exceptions'],
    ['an exception that is not an object', changed({ exceptions: ['login'] }), 'exceptions[0]'],
    ['an exception without page_type', exception({ page_type: undefined }), 'exceptions[0].page_type'],
    ['an exception without domain', exception({ domain: undefined }), 'exceptions[0].domain'],
    ['an exception without expires', exception({ expires: undefined }), 'exceptions[0].expires'],
    ['an exception that ends on no day', exception({ expires: '2026-13-01' }), 'exceptions[0].expires'],
    ['an approval that is not a boolean', exception({ requires_approval: 'yes' }), 'exceptions[0].requires_approval'],
    ['a list in the place of an entry', '[[]]', ''],
    ['text in the place of an entry', '"AG-0001"', ''],
  ] as [string, string, string][])('refuses %s and points at the field', (_name, text, field) => {
    const errors = errorsFor(text);
    expect(errors.map((f) => f.field)).toEqual([field]);
  });
});

describe('the text of a finding', () => {
  it.each([
    ['a date in another form', changed({ review_by: '2026-2-3' }), 'must be a date, YYYY-MM-DD; got "2026-2-3"'],
    ['a number for a date', changed({ review_by: 7 }), 'must be a date, YYYY-MM-DD; got 7'],
    ['a day that does not exist', changed({ review_by: '2026-02-30' }), 'must be a date, YYYY-MM-DD; got "2026-02-30"'],
    [
      'no date in a field that may be null',
      changed({ retired_on: 'soon' }),
      'must be a date, YYYY-MM-DD, or null; got "soon"',
    ],
    ['an id in another form', changed({ agent_id: 'AG-1' }), 'must match ^AG-[0-9]{4,}$; got "AG-1"'],
    ['another status', changed({ status: 'Pilot' }), /^must be one of proposed, .*; got "Pilot"$/],
  ] as [string, string, string | RegExp][])('of %s', (_name, text, message) => {
    const [finding] = errorsFor(text);
    if (typeof message === 'string') expect(finding?.message).toBe(message);
    else expect(finding?.message).toMatch(message);
  });
});

describe('docs/register.md', () => {
  const root = join(import.meta.dirname, '../..');
  const page = readFileSync(join(root, 'docs/register.md'), 'utf8');

  it('has a row for each field of the schema, with its type and whether it is required', () => {
    const schema = JSON.parse(readFileSync(join(root, 'data/schema/agent-register.schema.json'), 'utf8'));
    const typeOf = (property: { type?: string; items?: { type: string }; $ref?: string; anyOf?: unknown }): string => {
      if (property.anyOf !== undefined) return 'string or null';
      return property.items === undefined ? (property.type ?? 'string') : `array of ${property.items.type}`;
    };
    const expected = Object.entries<object>(schema.properties).map(([name, property]) =>
      [name, typeOf(property), schema.required.includes(name) ? 'yes' : ''].join(' | '),
    );
    const rows = [...page.matchAll(/^\| `(\w+)` \| ([^|]+) \| ?(yes)? ?\|/gm)].map(([, name, type, required = '']) =>
      [name, type, required].join(' | '),
    );
    expect(rows).toEqual(expected);
  });

  it('shows the output of the program', () => {
    const first = JSON.stringify({ ...SMALLEST, status: 'active' });
    const second = JSON.stringify({ ...SMALLEST, agent_id: 'AG-0002', owner: undefined });
    const shown = [...page.matchAll(/^agents\.json:\d+: (entry \d) \((.*)\): error: (.*)$/gm)];
    expect(
      findingsFor(`[${first},${second}]`).map((f) => [`entry ${f.entry}`, f.agent_id, `${f.field} ${f.message}`]),
    ).toEqual(shown.map(([, entry, id, message]) => [entry, id, message]));
  });
});

describe('the place of a finding', () => {
  it('has file, line, entry, agent and field in an array of entries', () => {
    const text = JSON.stringify([SMALLEST, { ...SMALLEST, agent_id: 'AG-0002', status: 'active' }], null, 2);
    const line = text.split('\n').findIndex((l) => l.includes('"active"')) + 1;
    expect(findingsFor(text)).toEqual([
      {
        severity: 'error',
        file: 'agents.json',
        line,
        entry: 2,
        agent_id: 'AG-0002',
        field: 'status',
        message: 'must be one of proposed, pilot, production, paused, retired; got "active"',
      },
    ]);
  });

  it('counts lines of NDJSON, including blank ones and those with CRLF', () => {
    const bad = JSON.stringify({ ...SMALLEST, agent_id: 'AG-0002', agency_tier: 9 });
    const text = `\ufeff${JSON.stringify(SMALLEST)}\r\n\r\n${bad}\r\n{"agent_id":\r\n`;
    expect(findingsFor(text).map((f) => [f.line, f.entry, f.field])).toEqual([
      [3, 2, 'agency_tier'],
      [4, 3, ''],
    ]);
  });

  it('is the line of the entry for a missing field', () => {
    const text = `[\n${JSON.stringify(SMALLEST)},\n${JSON.stringify({ ...SMALLEST, agent_id: 'AG-0002', owner: undefined })}]`;
    expect(findingsFor(text)).toMatchObject([
      { line: 3, entry: 2, field: 'owner', message: 'is required and missing' },
    ]);
  });

  it('is given for a repeated name, which JSON.parse would hide', () => {
    const text = JSON.stringify(SMALLEST, null, 1).replace('"owner"', '"status": "retired",\n "owner"');
    expect(errorsFor(text)).toMatchObject([{ field: 'status', message: 'is there twice; keep one' }]);
  });

  it('is given for a name that is repeated in another spelling', () => {
    const text = JSON.stringify(SMALLEST).replace('{', '{"\\u006fwner":"Bob Example",');
    expect(errorsFor(text)).toMatchObject([{ field: 'owner' }]);
  });

  it.each([
    ['an unfinished object', '{\n "a": 1,\n', 3],
    ['text after the end', '[]\n{} x', 2],
    ['a trailing comma', '[\n{},\n]', 3],
    ['a raw control character in a string', '{"a":\n"\u0001"}', 2],
    ['a string without an end', '[\n"\\"', 2],
    ['a bad number', '[\n01]', 2],
    ['deep nesting', `${'['.repeat(100_000)}`, 1],
    ['no text', ' \n', 1],
    ['a list without entries', '[]', 1],
  ])('is the line of %s', (_name, text, line) => {
    const errors = errorsFor(text);
    expect(errors).toHaveLength(1);
    expect(errors[0]?.line).toBe(line);
  });

  it('is given for bytes that are not UTF-8', () => {
    expect(findingsFor(Uint8Array.of(0x7b, 0xff, 0x7d))).toMatchObject([
      { severity: 'error', message: 'is not UTF-8 text' },
    ]);
  });

  it('is given for a name such as __proto__, which is an ordinary field', () => {
    const text = JSON.stringify(SMALLEST).replace('{', '{"__proto__":{"owner":1},');
    expect(findingsFor(text)).toMatchObject([{ severity: 'warning', field: '__proto__' }]);
  });
});

describe('a valid entry with a possible mistake', () => {
  it.each([
    ['an unknown field', { risk_scor: 10 }, 'risk_scor'],
    ['a blank owner', { owner: ' ' }, 'owner'],
    ['a lifetime that is not a duration', { credential_lifetime: 'forever' }, 'credential_lifetime'],
    [
      'an unknown field of an exception',
      { exceptions: [...FULL.exceptions, { ...FULL.exceptions[1], requires_aproval: true }] },
      'exceptions[2].requires_aproval',
    ],
  ])('leads to a warning about %s', (_name, change, field) => {
    expect(findingsFor(changed(change))).toMatchObject([{ severity: 'warning', field }]);
  });

  it('leads to a warning about an agent_id that two entries share, across files', () => {
    const validator = new RegisterValidator();
    const contents = new TextEncoder().encode(JSON.stringify(SMALLEST));
    validator.add('a.json', contents);
    validator.add('b.json', contents);
    const report = validator.report();
    expect(report).toMatchObject({ valid: true, files: 2, entries: 2, errors: 0, warnings: 1 });
    expect(report.findings[0]?.message).toBe('AG-0001 is also the id of the entry at a.json:1');
  });

  it('does not lead to more than a thousand findings: the rest is counted', () => {
    const validator = new RegisterValidator();
    validator.add('a.json', new TextEncoder().encode(JSON.stringify(Array.from({ length: 300 }, () => ({})))));
    const report = validator.report();
    expect(report.errors).toBe(2_100);
    expect(report.findings).toHaveLength(1_000);
  });
});

describe('pagegate register validate', () => {
  let dir = '';
  const run = (args: readonly string[], input = '') => pagegate(['register', 'validate', ...args], { input });

  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'pagegate-register-'));
    writeFileSync(join(dir, 'good.json'), JSON.stringify([SMALLEST, FULL]));
    writeFileSync(join(dir, 'bad.json'), JSON.stringify({ ...SMALLEST, owner: 3 }));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  it('ends with 0 for valid files', () => {
    const { status, stdout } = run([join(dir, 'good.json')]);
    expect(status).toBe(0);
    expect(stdout).toContain('2 entries in 1 file: valid (0 errors, 0 warnings)');
  });

  it('ends with 3 and a line with file, line, entry and field for an invalid one', () => {
    const { status, stdout } = run([join(dir, 'good.json'), join(dir, 'bad.json')]);
    expect(status).toBe(3);
    expect(stdout).toContain(`${join(dir, 'bad.json')}:1: entry 1 (AG-0001): error: owner must be a string, got 3`);
  });

  it('reads standard input and prints JSON', () => {
    const { status, stdout } = run(['--json', '-'], JSON.stringify({ ...SMALLEST, agent_id: '7' }));
    expect(status).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({ valid: false, findings: [{ file: '<stdin>', field: 'agent_id' }] });
  });

  it('names a file that cannot be read', () => {
    expect(() => readRegisterFile(join(dir, 'none.json'))).toThrow(PagegateError);
    const { status, stderr } = run([dir]);
    expect(status).toBe(7);
    expect(stderr).toContain('register_unreadable');
  });
});

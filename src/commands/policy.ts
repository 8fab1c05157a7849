/** `pagegate policy`: checks a policy file, tests it, compares two, or exports one compiled. */
import type { Command } from 'commander';
import { counted } from '../counted.ts';
import { PagegateError } from '../errors.ts';
import type { CaseResult, PolicyCase } from '../policy/cases.ts';
import type { PolicyChange } from '../policy/diff.ts';
import type { Policy } from '../policy/policy.ts';
import type { Verdict } from '../policy/types.ts';
import { printJson, printLine } from './shared/output.ts';

interface PolicyFlags {
  readonly policy?: string;
  readonly profile?: string;
  readonly json?: true;
}

export function registerPolicy(program: Command): void {
  const policy = program.command('policy').description('check, test and compare policies');
  policy
    .command('check')
    .description('check a policy file against its schema and for entries that can never match')
    .argument('[file]', 'your own policy file (else the policy as shipped)')
    .option('--profile <name>', 'the profile: strict, default or open')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate policy check /etc/pagegate/policy.json')
    .action(check);
  policy
    .command('test')
    .description('judge the cases of a file, and compare the verdicts with those they expect')
    .argument('<cases>', 'JSON file of cases: URL, method, what is known, the expected verdict')
    .option('--policy <file>', 'your own policy file (else the policy as shipped)')
    .option('--profile <name>', 'the profile: strict, default or open')
    .option('--json', 'print the results as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate policy test cases.json --policy /etc/pagegate/policy.json')
    .action(test);
  policy
    .command('diff')
    .description('show what differs between two policy files, and which verdicts change with it')
    .argument('<before>', 'a policy file, or "shipped"')
    .argument('<after>', 'a policy file, or "shipped"')
    .option('--cases <file>', 'JSON file of cases whose verdicts are compared')
    .option('--json', 'print the changes as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate policy diff shipped /etc/pagegate/policy.json --cases cases.json')
    .action(diff);
  policy
    .command('export')
    .description('print the compiled policy with its revision, for guards that judge locally')
    .argument('[file]', 'your own policy file (else the policy as shipped)')
    .option('--profile <name>', 'the profile: strict, default or open')
    .addHelpText('after', '\nExample:\n  $ pagegate policy export /etc/pagegate/policy.json > guard-policy.json')
    .action(exportPolicy);
}

async function exportPolicy(file: string | undefined, flags: PolicyFlags): Promise<void> {
  const { revision, document } = await load(file, flags.profile);
  printJson({ format: 'pagegate-policy-export/1', revision, url_parser: process.versions['ada'], document });
}

async function load(file: string | undefined, profile?: string): Promise<Policy> {
  const { loadPolicy } = await import('../policy/load.ts');
  return loadPolicy({ file, profile, once: true });
}

async function readCases(file: string): Promise<readonly PolicyCase[]> {
  const { readDocument } = await import('../policy/load.ts');
  return readDocument<readonly PolicyCase[]>(file, 'cases', true);
}

async function check(file: string | undefined, flags: PolicyFlags): Promise<void> {
  const { checkPolicy } = await import('../policy/ineffective-entries.ts');
  const policy = await load(file, flags.profile);
  const findings = checkPolicy(policy, file === undefined ? undefined : await load(undefined));
  const { document } = policy;
  if (flags.json) {
    printJson({ valid: true, revision: policy.revision, profile: policy.profile, findings, warnings: policy.warnings });
  } else {
    for (const warning of policy.warnings) printLine(`warning: ${warning}`);
    for (const finding of findings) printLine(`no effect: ${finding.message}`);
    const guards = document.rules.filter((rule) => rule.kind === 'guard').length;
    printLine(
      `valid: ${counted(document.hosts.length, 'host')}, ${counted(guards, 'guard rule')}, ` +
        `${counted(document.rules.length - guards, 'pattern rule')}, ` +
        `${counted(document.allow.length, 'allow entry', 'allow entries')}, profile ${policy.profile}, revision ${policy.revision}`,
    );
  }
  if (findings.length > 0) {
    throw new PagegateError('policy_no_effect', `${findings.length} found.`, { findings: findings.length });
  }
}

function written(verdict: Verdict | undefined): string {
  return verdict === undefined ? 'refused' : `${verdict.verdict} ${verdict.layer}/${verdict.id}`;
}

async function test(file: string, flags: PolicyFlags): Promise<void> {
  const { runCases } = await import('../policy/cases.ts');
  const results = runCases(await load(flags.policy, flags.profile), await readCases(file));
  const failed = results.filter((result) => !result.passed);
  if (flags.json) {
    printJson({
      cases: results.length,
      failed: failed.length,
      failures: failed.map((result) => ({ ...result.case, got: result.verdict ?? null })),
    });
  } else {
    for (const result of failed) printLine(failure(result));
    printLine(`${results.length - failed.length} of ${results.length} cases as expected`);
  }
  if (failed.length > 0) throw new PagegateError('policy_cases_failed', `${failed.length} of ${results.length}.`);
}

function failure({ case: item, verdict }: CaseResult): string {
  const { expect } = item;
  const place =
    expect.layer === undefined && expect.id === undefined ? '' : ` ${expect.layer ?? '*'}/${expect.id ?? '*'}`;
  const name = item.name === undefined ? '' : `${item.name}: `;
  return `${name}${item.method ?? 'GET'} ${item.url}\n  expected ${expect.verdict}${place}, got ${written(verdict)}`;
}

async function diff(
  before: string,
  after: string,
  flags: { readonly cases?: string; readonly json?: true },
): Promise<void> {
  const { diffPolicies } = await import('../policy/diff.ts');
  const [left, right] = await Promise.all([before, after].map((name) => load(name === 'shipped' ? undefined : name)));
  const changes = diffPolicies(left!.document, right!.document);
  const verdicts = flags.cases === undefined ? [] : await changedVerdicts(left!, right!, flags.cases);
  if (flags.json) {
    printJson({ before: left!.revision, after: right!.revision, changes, verdicts });
    return;
  }
  for (const change of changes) printChange(change);
  for (const { method, url, before: old, after: now } of verdicts)
    printLine(`verdict  ${method} ${url}: ${old} -> ${now}`);
  if (changes.length > 0) return;
  printLine(left!.revision === right!.revision ? 'no difference' : 'only the order of entries differs');
}

async function changedVerdicts(left: Policy, right: Policy, file: string) {
  const { assertCases, judgeCase } = await import('../policy/cases.ts');
  const cases = await readCases(file);
  assertCases(left, cases);
  return cases
    .map((item) => ({
      method: item.method ?? 'GET',
      url: item.url,
      before: written(judgeCase(left, item)),
      after: written(judgeCase(right, item)),
    }))
    .filter((item) => item.before !== item.after);
}

function printChange(change: PolicyChange): void {
  printLine(`${change.kind.padEnd(8)} ${change.part} ${change.id}`);
  for (const { name, before, after } of change.fields) {
    printLine(`           ${name}: ${shorten(before)} -> ${shorten(after)}`);
  }
}

function shorten(value: unknown): string {
  const text = JSON.stringify(value) ?? 'absent';
  return text.length > 100 ? `${text.slice(0, 97)}...` : text;
}

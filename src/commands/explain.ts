/** `pagegate explain`: shows the verdict for a URL layer by layer, without a server, a key or a charge. */
import type { Command } from 'commander';
import { counted } from '../counted.ts';
import type { CanonicalUrl } from '../domain/canonical-url.ts';
import type { Target } from '../domain/target.ts';
import { PagegateError } from '../errors.ts';
import type { Index } from '../index/read.ts';
import { isAbsent } from '../platform/folders.ts';
import { printable } from '../platform/printable.ts';
import type { ExplainStep, Explanation } from '../policy/explain.ts';
import type { Policy } from '../policy/policy.ts';
import type { Evidence, PageEvidence } from '../policy/types.ts';
import { configFrom } from './shared/config-options.ts';
import { addIndexOptions, type IndexFlags, indexPathFrom } from './shared/index-options.ts';
import { printJson, printLine } from './shared/output.ts';

interface ExplainFlags extends IndexFlags {
  readonly method: string;
  readonly policy?: string;
  readonly profile?: string;
  readonly found?: true;
  readonly pageType?: readonly string[];
  readonly json?: true;
}

export function registerExplain(program: Command): void {
  addIndexOptions(program.command('explain').description('show how a verdict comes about, layer by layer'))
    .argument('<url>', 'a URL or a domain')
    .option('--method <method>', 'the HTTP method that the agent intends', 'GET')
    .option('--policy <file>', 'your own policy file (else the configured one)')
    .option('--profile <name>', 'the profile: strict, default or open (else the configured one)')
    .option('--found', 'treat the domain as classified, without an index')
    .option(
      '--page-type <type=URL>',
      'treat a page as verified, without an index (repeatable; implies --found)',
      (text: string, before: readonly string[] = []) => [...before, text],
    )
    .option('--json', 'print the explanation as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ pagegate explain https://github.com/login --method POST' +
        '\n  $ pagegate explain https://example.org/enter/2 --page-type login=https://example.org/enter',
    )
    .action(explainCommand);
}

async function explainCommand(input: string, flags: ExplainFlags): Promise<void> {
  const { targetFrom } = await import('./shared/target.ts');
  const { loadPolicy } = await import('../policy/load.ts');
  const { explain } = await import('../policy/explain.ts');
  const { HTTP_TOKEN } = await import('../network/http-syntax.ts');
  const target = targetFrom(input);
  if (!HTTP_TOKEN.test(flags.method))
    throw new PagegateError('bad_method', `Got ${JSON.stringify(flags.method)}.`, { got: flags.method });
  const config = await configFrom(flags);
  const file = flags.policy ?? config.policy.file ?? undefined;
  const profile = flags.profile ?? config.policy.profile ?? undefined;
  const policy = loadPolicy({ file, profile, once: true });
  const stated = await statedBy(flags, policy);
  const index = stated === undefined ? await openIndexIfAny(flags) : undefined;
  try {
    const answer = await answerFor(stated, index, target, config.index.subdomains);
    const method = flags.method.toUpperCase();
    const explanation = explain(policy, { url: target.url, method }, answer.evidence);
    const isStated = stated !== undefined;
    const report = { input, method, target, ...answer, isStated, index: index?.info.path ?? null, explanation };
    if (flags.json) printJson(toJson(report, policy.revision));
    else print(report);
  } finally {
    index?.close();
  }
}

/** Returns the evidence that the options state; undefined if they state none. @throws PagegateError usage */
async function statedBy({ found, pageType = [], index }: ExplainFlags, policy: Policy): Promise<Evidence | undefined> {
  if (found === undefined && pageType.length === 0) return undefined;
  if (index !== undefined)
    throw new PagegateError('usage', '--found and --page-type replace an index: give either them or --index.');
  const { statedEvidence } = await import('../policy/cases.ts');
  const { parseUrl } = await import('../domain/canonical-url.ts');
  const types = new Set(policy.document.page_types.map(({ type }) => type));
  const pages = pageType.map((text): PageEvidence => {
    const equals = text.indexOf('=');
    const page = { type: text.slice(0, Math.max(equals, 0)), url: text.slice(equals + 1) };
    if (!types.has(page.type))
      throw new PagegateError(
        'usage',
        `--page-type ${text}: expected <type>=<URL>, the type one of: ${[...types].join(', ')}.`,
      );
    if (parseUrl(page.url) === undefined)
      throw new PagegateError(
        'usage',
        `--page-type ${text}: ${JSON.stringify(page.url)} is not a URL with its scheme.`,
      );
    return page;
  });
  return statedEvidence({ found: true, pages });
}

/** Opens the named or served index; undefined if no index is named and none is served yet. */
async function openIndexIfAny(flags: IndexFlags): Promise<Index | undefined> {
  const path = await indexPathFrom(flags);
  // Only if the file is absent: an unreadable index is a failure and must not look like an unclassified domain.
  if (flags.index === undefined && isAbsent(path)) return undefined;
  const { openIndex } = await import('../index/read.ts');
  return openIndex(path);
}

/** What is known about a domain, and what the server would answer about it. */
interface Known {
  readonly evidence: Evidence;
  /** The domain whose record the answer is from. */
  readonly domain: string;
  /** Whether there is such a record. */
  readonly found: boolean;
}

async function answerFor(
  stated: Evidence | undefined,
  index: Index | undefined,
  target: Target,
  subdomains: 'exact' | 'parent',
): Promise<Known> {
  if (index === undefined) {
    const evidence = stated ?? (await import('../policy/types.ts')).NO_EVIDENCE;
    return { evidence, domain: target.key, found: evidence.found };
  }
  const { RecordEvidence } = await import('../server/record-evidence.ts');
  const evidence = new RecordEvidence(index, target, subdomains);
  return { evidence, domain: evidence.domain, found: evidence.answered };
}

interface Report extends Known {
  readonly input: string;
  readonly method: string;
  readonly target: Target;
  /** Whether the evidence comes from the options. */
  readonly isStated: boolean;
  readonly index: string | null;
  readonly explanation: Explanation;
}

function toJson(
  { input, method, target, evidence, domain, found, isStated, index, explanation }: Report,
  revision: string,
): Record<string, unknown> {
  const { url } = target;
  return {
    input,
    method,
    domain,
    canonical: {
      href: url.href,
      scheme: url.scheme,
      host: url.host,
      host_kind: url.hostKind,
      port: url.port,
      path: url.path,
      decoded_path: url.decodedPath,
      query: url.query,
      has_userinfo: url.hasUserinfo,
      read_as_https: target.bare,
    },
    record: {
      index,
      stated: isStated,
      found,
      classified: evidence.found,
      parent_found: evidence.parentFound,
      page_urls: [...evidence.pages()],
      filtering_categories: evidence.filteringCategories(),
    },
    steps: explanation.steps,
    verdict: explanation.verdict.verdict,
    matched: { layer: explanation.verdict.layer, id: explanation.verdict.id, note: explanation.verdict.note },
    policy_revision: revision,
  };
}

function print(report: Report): void {
  const { input, method, target, domain, explanation } = report;
  printLine(`${method} ${printable(input)}${target.bare ? '  (no scheme: read as https://)' : ''}`);
  printLine(`  canonical  ${describeUrl(target.url)}`);
  printLine(`  domain     ${domain}`);
  printLine(`  record     ${describeRecord(report)}`);
  printLine();
  for (const [at, step] of explanation.steps.entries()) printStep(at + 1, step);
  const { verdict, layer, id, note } = explanation.verdict;
  printLine(`\n${verdict}  ${layer}/${id}\n  ${note}`);
}

function describeUrl(url: CanonicalUrl): string {
  const decoded = url.decodedPath === url.path ? '' : `  (path decoded: ${JSON.stringify(url.decodedPath)})`;
  return `${url.href}${decoded}`;
}

function describeRecord({ target, evidence, domain, isStated, index }: Report): string {
  if (index === null && !isStated) return 'no index is served yet: judged as an unclassified domain';
  const pages = [...evidence.pages()].length;
  const categories = evidence.filteringCategories().join(', ');
  const known = evidence.found ? 'found' : evidence.parentFound ? 'not found, a domain above it is' : 'not found';
  const found = domain === target.key ? known : `found for ${target.key}, which has no record of its own`;
  return `${isStated ? 'as stated: ' : ''}${found}, ${counted(pages, 'verified page')}${categories === '' ? '' : `, ${categories}`}`;
}

function printStep(number: number, step: ExplainStep): void {
  const mark = step.decides ? '=>' : step.reached ? '  ' : ' -';
  const matches = step.matches.map(({ verdict, id }) => `${verdict} ${id}`).join(', ');
  printLine(
    `${mark} ${number} ${step.step.padEnd(17)} ${step.says}${matches === '' ? '' : `: ${matches}`}${step.reached ? '' : '  (not asked)'}`,
  );
}

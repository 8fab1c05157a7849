/** The checks that a pattern rule can name, each compiled into a function of the request. */
import { isBulk } from '../checks/bulk-query.ts';
import { hasOpenRedirect } from '../checks/nested-urls.ts';
import type { RuleEntry } from '../documents.ts';
import type { Subject } from '../subject.ts';
import type { TokenIndex } from '../words/tokens.ts';

export type PatternCheck = (subject: Subject) => boolean;

type Factory = (rule: RuleEntry, tokens: TokenIndex) => PatternCheck;

export const PATTERN_CHECKS: Readonly<Record<string, Factory>> = {
  open_redirect: (rule, tokens) => {
    const lists = { tokens, names: tokens.ordinal(rule.names ?? ''), relays: tokens.ordinal(rule.relays ?? '') };
    return (subject) => hasOpenRedirect(subject, lists);
  },
  bulk_query: (rule) => {
    const limits = {
      maxQueryLength: rule.max_query_length ?? 1024,
      maxRun: rule.max_run ?? 160,
      maxSum: rule.max_sum ?? 256,
    };
    return ({ url }) => isBulk(url, limits);
  },
  graphql_mutation: () => (subject) => {
    if (subject.parameters.length === 0 || !GRAPHQL_PATH.test(subject.url.decodedPath)) return false;
    return subject.parameters.some(({ name, value }) => QUERY_NAME.test(name) && MUTATION.test(value));
  },
};

/** A path of a GraphQL endpoint. Anything except a letter or digit may follow the name. */
const GRAPHQL_PATH = /\/(?:graphql|gql|graphiql)(?![a-z0-9])/i;
const QUERY_NAME = /(?:^|[^a-z0-9])query$/i;
/** A GraphQL mutation. Comments and fragments may come before the keyword. */
const MUTATION = /(?:^|[\s}])mutation(?=[\s({@])/i;

/** Reads the parameters of a request as a target, or finds what is wrong with them. */
import { errorCodeOf, parseTarget, remedyFor, type Target, type TargetProblem } from '../../domain/target.ts';
import type { ErrorCode } from '../../errors.ts';
import type { Query } from './query.ts';
import type { RefusalOptions } from './refusal.ts';

const PARAMETER_ECHO_MAX_LENGTH = 64;
const HINTS: Partial<Record<ErrorCode, string>> = {
  unknown_parameter: 'Known are url, domain, method and api_key.',
  bad_encoding: 'Percent-encode the bytes of its UTF-8 form, each as % and two hexadecimal digits.',
  bad_method: 'Send one word such as GET or POST.',
};

/** A problem with the input. */
export interface InputProblem {
  readonly problem: ErrorCode;
  /** The parameter at fault; empty if there is none. */
  readonly parameter: string;
  /** Why the value is not a domain. */
  readonly reason?: TargetProblem;
}

/** Returns the target that the query names, or the problem. */
export function readTarget(query: Query): Target | InputProblem {
  const { problem, parameter, url, domain } = query;
  if (problem !== undefined) return { problem, parameter };
  const value = url ?? domain;
  if (value === undefined) return { problem: 'missing_input', parameter: '' };
  const target = readValue(value, url === undefined ? 'domain' : 'url');
  if ('problem' in target || url === undefined || domain === undefined) return target;
  const other = readValue(domain, 'domain');
  if ('problem' in other || other.key === target.key) return 'problem' in other ? other : target;
  return { problem: 'conflicting_input', parameter: '' };
}

function readValue(value: string, parameter: string): Target | InputProblem {
  const target = parseTarget(value);
  if (!('problem' in target)) return target;
  const { problem: reason } = target;
  const code = errorCodeOf(reason);
  return code === 'input_too_long' ? { problem: code, parameter } : { problem: code, parameter, reason };
}

/** Details for the refusal: the parameter, why its value is not a domain, and which parameters exist. */
export function inputRefusal({ problem, parameter, reason }: InputProblem): RefusalOptions {
  const hint = reason === undefined ? HINTS[problem] : remedyFor(reason);
  const name =
    parameter.length > PARAMETER_ECHO_MAX_LENGTH ? `${parameter.slice(0, PARAMETER_ECHO_MAX_LENGTH)}…` : parameter;
  const fields = { ...(parameter === '' ? {} : { parameter: name }), ...(reason === undefined ? {} : { reason }) };
  return { ...(parameter === '' ? {} : { fields }), ...(hint === undefined ? {} : { hint }) };
}

/** Answers the hook of a coding agent about a tool call: from the JSON that the agent sends to the JSON that it reads. */
import type { Guard } from '../../../src/guard/guard.ts';
import { type Decision, refusalText } from '../../../src/guard/refusal.ts';

/** Longest input. A longer one is not a tool call with a URL. */
export const INPUT_MAX_BYTES = 1024 * 1024;

/** The answer to the agent. It is empty if the agent's own permissions should decide. */
export interface HookAnswer {
  readonly hookSpecificOutput?: {
    readonly hookEventName: 'PreToolUse';
    readonly permissionDecision: 'deny' | 'ask';
    readonly permissionDecisionReason: string;
  };
}

/** A tool call with the request that it will make. */
interface ToolCall {
  readonly url: string;
  readonly method: string;
  readonly permissionMode: unknown;
}

/** The agent's permission modes in which `ask` asks a person. In others the call passes, or a model answers (anthropics/claude-code#77212). */
const ASKING_MODES: ReadonlySet<unknown> = new Set(['default', 'acceptEdits']);

/** Returns an answer that refuses the call with a reason. */
export function deny(reason: string): HookAnswer {
  return answer('deny', reason);
}

function answer(permissionDecision: 'deny' | 'ask', permissionDecisionReason: string): HookAnswer {
  return { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason } };
}

/** Judges the tool call in `input`. An input without a clear target is refused. Never rejects. */
export async function answerHook(guard: Guard, input: string): Promise<HookAnswer> {
  try {
    const call = readCall(input);
    if (typeof call === 'string') return deny(`pagegate refused this tool call: ${call}`);
    return answerFor(await guard.check(call.url, { method: call.method }), ASKING_MODES.has(call.permissionMode));
  } catch (error) {
    return deny(`pagegate's hook failed, so this call is refused: ${error instanceof Error ? error.message : error}`);
  }
}

function answerFor(decision: Decision, canAsk: boolean): HookAnswer {
  if (decision.verdict === 'allow') return {};
  if (decision.verdict !== 'flag') return deny(refusalText(decision));
  return canAsk
    ? answer('ask', refusalText(decision))
    : deny(`${refusalText(decision)} In this permission mode nobody is asked.`);
}

function readCall(input: string): ToolCall | string {
  let event: unknown;
  try {
    event = JSON.parse(input);
  } catch {
    return 'the hook was given no JSON.';
  }
  const { hook_event_name: name, tool_input: toolInput, permission_mode: permissionMode } = fieldsOf(event);
  if (name !== 'PreToolUse') return 'this hook belongs under PreToolUse.';
  const { url, method = 'GET' } = fieldsOf(toolInput);
  if (typeof url !== 'string' || url.trim() === '') return 'its input has no url, so it cannot be judged.';
  return typeof method === 'string' ? { url, method, permissionMode } : 'its method is not a text.';
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

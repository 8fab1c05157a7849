/** The exports of the package `pagegate-guard`. */
export type { AddressExceptions } from './addresses.ts';
export { isPublicAddress } from './addresses.ts';
export type { ConnectOptions } from './connections.ts';
export { decisionLine } from './decision-line.ts';
export type { GuardedAgentOptions } from './fetch.ts';
export { createGuardedFetch, GuardedAgent } from './fetch.ts';
export type { GuardOptions, RequestOptions } from './guard.ts';
export { Guard } from './guard.ts';
export type { GuardedAgents, GuardedAgentsOptions } from './node-agents.ts';
export { createGuardedAgents } from './node-agents.ts';
export type { Decision, GuardId, GuardVerdict } from './refusal.ts';
export { GUARD_IDS, isAllowed, RefusedError, refusalIn, refusalPage, refusalText } from './refusal.ts';

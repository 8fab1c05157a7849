/** The commands of the program, in the order in which `--help` lists them. */
import type { Command } from 'commander';
import { registerAccount } from './account.ts';
import { registerBuild } from './build.ts';
import { registerConsole } from './console.ts';
import { registerDiff } from './diff.ts';
import { registerDoctor } from './doctor.ts';
import { registerDrain } from './drain.ts';
import { registerDrop } from './drop.ts';
import { registerExplain } from './explain.ts';
import { registerExport } from './export.ts';
import { registerGenerations } from './generations.ts';
import { registerInspect } from './inspect.ts';
import { registerKey } from './key.ts';
import { registerLicense } from './license.ts';
import { registerLookup } from './lookup.ts';
import { registerPlan } from './plan.ts';
import { registerPolicy } from './policy.ts';
import { registerPrune } from './prune.ts';
import { registerRefresh } from './refresh.ts';
import { registerRegister } from './register.ts';
import { registerReload } from './reload.ts';
import { registerRestart } from './restart.ts';
import { registerRollback } from './rollback.ts';
import { registerServe } from './serve.ts';
import { registerStatus } from './status.ts';
import { registerVerify } from './verify.ts';

export const commands: readonly ((program: Command) => void)[] = [
  registerBuild,
  registerVerify,
  registerInspect,
  registerLookup,
  registerExplain,
  registerPolicy,
  registerExport,
  registerDiff,
  registerRefresh,
  registerDrop,
  registerGenerations,
  registerRollback,
  registerPrune,
  registerDoctor,
  registerAccount,
  registerKey,
  registerPlan,
  registerLicense,
  registerRegister,
  registerConsole,
  registerServe,
  registerReload,
  registerRestart,
  registerDrain,
  registerStatus,
];

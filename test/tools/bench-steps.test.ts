import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { STEPS, stepOfFunction } from '../../bench/http/steps.ts';

const SOURCE = new URL('../../src/', import.meta.url);
const urlOf = (place: string): string => new URL(place, SOURCE).href;

test('each step of a request names existing files and functions', () => {
  const places = STEPS.flatMap((step) => step.places);
  expect(places.filter((place) => !existsSync(new URL(place, SOURCE)))).toEqual([]);
  const inspected = ['server/request/check-handler.ts', 'server/request/request-headers.ts', 'ledger/meter.ts'];
  const code = inspected.map((file) => readFileSync(new URL(file, SOURCE), 'utf8')).join('\n');
  const functions = STEPS.flatMap((step) => step.functions ?? []);
  expect(functions.filter((name) => !code.includes(`${name}(`) && !code.includes(`${name}:`))).toEqual([]);
});

test('a function belongs to the first step that names it or its file', () => {
  expect(stepOfFunction(urlOf('server/request/check-handler.ts'), '#admit')).toBe('headers and client');
  expect(stepOfFunction(urlOf('server/request/check-handler.ts'), 'handle')).toBe('the handler itself');
  expect(stepOfFunction(urlOf('ledger/meter.ts'), 'authenticate')).toBe('key');
  expect(stepOfFunction(urlOf('ledger/meter.ts'), 'charge')).toBe('charge');
  expect(stepOfFunction(urlOf('index/read/record-decoder.ts'), 'find')).toBe('record');
  expect(stepOfFunction('node:internal/process', 'nextTick')).toBeUndefined();
});

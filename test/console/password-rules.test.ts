/** Which passwords a user of the console may have. */
import { expect, it } from 'vitest';
import { checkPassword } from '../../src/console/store/password-rules.ts';
import { LIMITS } from '../../src/limits.ts';

const refusal = (password: string, name = 'dana.miller'): string => {
  try {
    checkPassword(password, name);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
};

it.each([
  ['short', /Got 5 characters\.$/],
  ['x'.repeat(LIMITS.consolePasswordCharacters.value + 1), /Got 257 characters\.$/],
  ['aaaaaaaaaaaa', /repeats/],
  ['abababababab', /repeats/],
  ['x7k2p9x7k2p9', /repeats/],
  ['x7k2p9x7k2p9x7k', /repeats/],
  ['passwordpassword', /repeats/],
  ['aaaaaabbbbbb', /little more than/],
  ['123456789012', /little more than/],
  ['210987654321', /little more than/],
  ['abcdefghijkl', /little more than/],
  ['qwertyuiop[]', /little more than/],
  ['1q2w3e4r5t6y', /little more than/],
  ['QWERTZuiop1234', /little more than/],
  ['password1234', /little more than/],
  ['Password!2024', /little more than/],
  ['dana.miller1', /little more than/],
  ['DanaMiller2026', /little more than/],
  ['ｄａｎａ.ｍｉｌｌｅｒ１', /little more than/],
  ['pagegate-admin', /little more than/],
  ['consoleoperator1', /little more than/],
])('%s is refused', (password, why) => expect(refusal(password)).toMatch(why));

it.each([
  'correct horse battery staple',
  'a rainy tuesday in may',
  'hunter2-tern-mast',
  '918273645546',
  'gVt8!qLw2#Zx',
  'dana likes rain and tea',
  'пароль из слов леса',
  '雨の日は家で本を読むのが好き',
])('%s is accepted', (password) => expect(refusal(password)).toBe(''));

it('a short name does not weaken a password that contains its letters', () =>
  expect(refusal('rainy tuesday morning', 'a')).toBe(''));

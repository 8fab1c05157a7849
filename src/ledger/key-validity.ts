/** What may be told of a key without the key. */
export { isKeyCurrent, isLasting } from './store/records.ts';

/** What may be told of a key without the key. */
export { isKeyCurrent } from './store/records.ts';

/** A small index for the console's tests. */
import type { EntryInput } from '../support/index-file.ts';

export const ENTRIES: readonly EntryInput[] = [
  {
    domain: 'shop.example.com',
    language: 'en',
    page_types: { login: 'https://shop.example.com/login', pricing: 'https://shop.example.com/pricing' },
  },
  { domain: 'news.example.org', language: 'de', page_types: {} },
];

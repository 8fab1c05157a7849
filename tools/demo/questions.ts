/** What `make demo` asks. */

export interface Question {
  readonly title: string;
  readonly query: Readonly<Record<string, string>>;
  /** Sent instead of the account's key. */
  readonly key?: string;
  /** The status that the contract gives; another one fails the demo. */
  readonly status: number;
}

export const QUESTIONS: readonly Question[] = [
  { title: 'A domain that is classified', query: { url: 'zoom.us' }, status: 200 },
  { title: 'A page for reading, verified on that domain', query: { url: 'https://zoom.us/pricing' }, status: 200 },
  {
    title: 'The full URL of its verified login page',
    query: { url: 'https://zoom.us/oauth/authorize?client_id=1' },
    status: 200,
  },
  { title: 'A POST to it', query: { url: 'https://zoom.us/pricing', method: 'POST' }, status: 200 },
  {
    title: 'A domain that nobody has vetted',
    query: { url: 'https://a-shop-nobody-has-vetted.com/offers' },
    status: 200,
  },
  {
    title: 'The metadata service of a cloud',
    query: { url: 'http://169.254.169.254/latest/meta-data/' },
    status: 200,
  },
  { title: 'A value that is no domain', query: { url: 'localhost' }, status: 400 },
  { title: 'A key that matches no account', query: { url: 'zoom.us' }, key: 'pg_not-a-key', status: 401 },
];

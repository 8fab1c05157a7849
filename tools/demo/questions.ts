/** The requests of `make demo`. They match the data of the sample drop in data/sample. */

export interface Question {
  readonly title: string;
  readonly query: Readonly<Record<string, string>>;
  /** Sent instead of the account's key. */
  readonly key?: string;
  /** The expected status, and the verdict if there is one. Any other answer fails the demo. */
  readonly status: number;
  readonly verdict?: 'allow' | 'deny' | 'flag';
}

export const QUESTIONS: readonly Question[] = [
  { title: 'A domain that is classified', query: { url: 'twitch.tv' }, status: 200, verdict: 'allow' },
  {
    title: 'A page for reading, verified on its domain',
    query: { url: 'https://www.netlify.com/pricing/' },
    status: 200,
    verdict: 'allow',
  },
  {
    title: 'The full URL of a verified login page',
    query: { url: 'https://www.twitch.tv/login?redirect=%2Fdirectory' },
    status: 200,
    verdict: 'deny',
  },
  { title: 'A POST', query: { url: 'https://www.twitch.tv/', method: 'POST' }, status: 200, verdict: 'deny' },
  {
    title: 'A domain that nobody has vetted',
    query: { url: 'https://a-shop-nobody-has-vetted.com/offers' },
    status: 200,
    verdict: 'flag',
  },
  {
    title: 'The metadata service of a cloud',
    query: { url: 'http://169.254.169.254/latest/meta-data/' },
    status: 200,
    verdict: 'deny',
  },
  { title: 'A value that is no domain', query: { url: 'localhost' }, status: 400 },
  { title: 'A key that matches no account', query: { url: 'twitch.tv' }, key: 'pg_not-a-key', status: 401 },
];

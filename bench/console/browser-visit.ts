/** A browser of the console's bench: it asks and reads to the end. */
export interface Visited {
  readonly ms: number;
  readonly text: string;
  /** Otherwise it was asked to come again. */
  readonly isServed: boolean;
}

export async function visit(url: string, cookie: string): Promise<Visited> {
  const startedMs = performance.now();
  const response = await fetch(url, { headers: { cookie, 'x-pagegate-renew': '1' } });
  const text = await response.text();
  if (response.status !== 200 && response.status !== 503) throw new Error(`${url} answers ${response.status}`);
  return { ms: performance.now() - startedMs, text, isServed: response.status === 200 };
}

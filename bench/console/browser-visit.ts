/** Loads a page of the console as a browser does: sends the request and reads the response to its end. */
export interface Visited {
  readonly ms: number;
  readonly text: string;
  /** False if the console asked the browser to retry. */
  readonly isServed: boolean;
}

export async function visit(url: string, cookie: string): Promise<Visited> {
  const startedMs = performance.now();
  const response = await fetch(url, { headers: { cookie, 'x-pagegate-renew': '1' } });
  const text = await response.text();
  if (response.status !== 200 && response.status !== 503) throw new Error(`${url} answers ${response.status}`);
  return { ms: performance.now() - startedMs, text, isServed: response.status === 200 };
}

/** Fetches one page as text, within limits. */

/** Longest text that is returned, in UTF-16 code units. */
export const TEXT_MAX_LENGTH = 200_000;
const BYTES_MAX = 4 * 1024 * 1024;
/** Content types that a model can read unchanged. */
const TEXT_TYPE = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|xhtml\+xml|javascript|yaml|toml)\b)/i;

export interface FetchedPage {
  readonly url: string;
  readonly status: number;
  readonly content_type: string;
  readonly text: string;
  readonly truncated: boolean;
}

export interface PageOptions {
  readonly lengthMax: number;
  readonly deadlineMs: number;
  readonly version: string;
  /** Cancels the request. */
  readonly signal: AbortSignal;
}

/**
 * Fetches a page with GET, without cookies.
 *
 * @throws RefusedError if the URL or a hop of a redirect is refused; Error if the response is not text or takes too long
 */
export async function fetchPage(
  guardedFetch: typeof fetch,
  url: string,
  { lengthMax, deadlineMs, version, signal }: PageOptions,
): Promise<FetchedPage> {
  const response = await guardedFetch(url, {
    headers: {
      accept: 'text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5',
      'user-agent': `pagegate-mcp/${version}`,
    },
    signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
  });
  const contentType = response.headers.get('content-type') ?? 'text/plain';
  if (!TEXT_TYPE.test(contentType)) {
    await response.body?.cancel();
    throw new Error(`its content type is ${contentType}, which is no text.`);
  }
  const { bytes, isCut } = await readBytes(response);
  const all = decoderFor(contentType).decode(bytes);
  // Drop half of a surrogate pair at the end.
  const text = all.slice(0, lengthMax).replace(/[\ud800-\udbff]$/, '');
  const truncated = isCut || text.length < all.length;
  return { url: response.url, status: response.status, content_type: contentType, text, truncated };
}

async function readBytes(response: Response): Promise<{ bytes: Buffer; isCut: boolean }> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    sizeBytes += chunk.length;
    // Leaving the loop cancels the rest of the stream.
    if (sizeBytes > BYTES_MAX) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, BYTES_MAX), isCut: sizeBytes > BYTES_MAX };
}

function decoderFor(contentType: string): InstanceType<typeof TextDecoder> {
  const label = /charset="?([\w-]+)/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label);
  } catch {
    return new TextDecoder();
  }
}

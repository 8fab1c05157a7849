/** The methods that a request can have on the other side. */

/** Headers by which a request asks to be taken for one with another method. */
const OVERRIDES = new Set(['x-http-method-override', 'x-method-override', 'x-http-method']);

/** The method, and those that headers would put in its place; each is judged. Header names may have any case. */
export function methodsOf(method: string, headers: Iterable<readonly [string, string]>): readonly string[] {
  const methods = [method];
  for (const [name, value] of headers) if (OVERRIDES.has(name.toLowerCase())) methods.push(value.trim());
  return methods;
}

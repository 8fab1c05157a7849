/** Names that an object of a JSON text has twice: `JSON.parse` silently keeps the later one. */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g;

/** An object or array that is open while the text is read. */
interface Open {
  /** Undefined for an array. */
  readonly names: Set<string> | undefined;
  /** Where it stands, for example `server`; empty for the whole. */
  readonly path: string;
  /** The name that was read last. */
  name: string;
}

/** The places of repeated names, such as `server.port`, in the order of the text, which must be valid JSON. */
export function repeatedNames(text: string): string[] {
  const repeated: string[] = [];
  const open: Open[] = [];
  let string = '""';
  for (const [token] of text.matchAll(TOKEN)) {
    const at = open.at(-1);
    const here = at === undefined ? '' : placeOf(at);
    if (token === '{') open.push({ names: new Set(), path: here, name: '' });
    else if (token === '[') open.push({ names: undefined, path: here, name: '' });
    else if (token === '}' || token === ']') open.pop();
    else if (token !== ':') string = token;
    else if (at?.names !== undefined) {
      at.name = JSON.parse(string) as string;
      if (at.names.has(at.name)) repeated.push(placeOf(at));
      at.names.add(at.name);
    }
  }
  return repeated;
}

function placeOf({ path, name }: Open): string {
  return path === '' || name === '' ? `${path}${name}` : `${path}.${name}`;
}

/** A connection that is lost at the worst moment. */
import { PagegateError } from '../../src/errors.ts';
import type { Engine } from '../../src/ledger/postgres/engine.ts';

/** Returns a connection that ends just before or just after a commit. */
export function endAtCommit(engine: Engine, when: 'before' | 'after'): Engine {
  let isGone = false;
  const look = (): void => {
    if (isGone) throw new PagegateError('ledger_unavailable', 'The connection is gone.');
  };
  return {
    name: engine.name,
    get isOpen() {
      return !isGone && engine.isOpen;
    },
    query: async (text, values) => {
      look();
      return engine.query(text, values);
    },
    script: async (text) => {
      look();
      if (text !== 'COMMIT') return engine.script(text);
      // The engine rolls back the open transaction of a connection that has ended.
      await engine.script(when === 'before' ? 'ROLLBACK' : 'COMMIT');
      isGone = true;
      look();
    },
    listen: (onChange) => engine.listen(onChange),
    close: () => engine.close(),
  };
}

/** The shipped dashboard and alert rules match the table of metrics. Prometheus itself reads them in test/integrations. */
import { describe, expect, test } from 'vitest';
import { METRICS } from '../../src/server/metric-definitions.ts';
import { textOf } from '../tidy/tree.ts';

const ALERTS = textOf('tools/packaging/monitoring/alerts.yml');
const DASHBOARD = JSON.parse(textOf('tools/packaging/monitoring/grafana-dashboard.json')) as Dashboard;

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}
interface Dashboard {
  readonly panels: readonly Panel[];
}

/** Returns the metrics in a text, without their prefix and the suffixes of histograms. */
const metricsIn = (text: string): Set<string> =>
  new Set([...text.matchAll(/\bpagegate_(\w+)/g)].map(([, name = '']) => name.replace(/_bucket$/, '')));

const expressions = DASHBOARD.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const rules = [...ALERTS.matchAll(/- alert: (\w+)\n {8}expr: (.*)\n/g)].map(([, name = '', expr = '']) => ({
  name,
  expr,
}));

describe('the alert rules', () => {
  test('name existing metrics, with existing values of labels', () => {
    expect(rules.length).toBe(ALERTS.split('- alert:').length - 1);
    const known = new Set(Object.keys(METRICS));
    for (const { name, expr } of rules) {
      expect(
        [...metricsIn(expr)].filter((metric) => !known.has(metric)),
        name,
      ).toEqual([]);
      for (const [, metric = '', labels = ''] of expr.matchAll(/pagegate_(\w+)\{([^}]*)\}/g)) {
        const has = Object.keys(METRICS[metric as keyof typeof METRICS].labels);
        expect(has, name).toEqual(expect.arrayContaining([...labels.matchAll(/(\w+)[=!]/g)].map(([, label]) => label)));
      }
    }
  });

  test('cover every metric that can indicate a problem', () => {
    const worrying = Object.entries(METRICS).filter(([, { worry }]) => worry !== '');
    const covered = metricsIn(rules.map(({ expr }) => expr).join('\n'));
    // The limit of connections is a setting; the ones refused because of it are counted.
    covered.add('connections');
    expect(worrying.map(([name]) => name).filter((name) => !covered.has(name))).toEqual([]);
  });

  test('each state severity, meaning and what to do, and are in the documents', () => {
    const page = textOf('docs/operations.md');
    for (const text of ALERTS.split('- alert: ').slice(1)) {
      const name = text.split('\n')[0]!;
      expect(text, name).toMatch(/labels: \{ severity: (?:page|ticket) \}/);
      expect(text, name).toMatch(/summary: ./);
      expect(text, name).toMatch(/description: ./);
      expect(page, 'docs/operations.md').toContain(`\`${name}\``);
    }
  });
});

describe('the dashboard', () => {
  test('shows every metric, and no unknown one', () => {
    expect([...metricsIn(expressions.join('\n'))].sort()).toEqual(Object.keys(METRICS).sort());
  });

  test('has panels with distinct titles and explanations that do not overlap', () => {
    const ids = DASHBOARD.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const occupied = new Set<string>();
    for (const { title, description, targets, gridPos } of DASHBOARD.panels) {
      if (targets !== undefined) expect(description, title).toMatch(/\.$/);
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(occupied.has(`${x} ${y}`), title).toBe(false);
          occupied.add(`${x} ${y}`);
        }
      }
    }
  });

  test('shows only the chosen servers', () => {
    for (const expr of expressions) {
      const selectors = [...expr.matchAll(/pagegate_\w+(\{[^}]*\})?/g)].map(([, selector = '']) => selector);
      for (const selector of selectors) expect(selector, expr).toContain('instance=~"$instance"');
    }
  });
});

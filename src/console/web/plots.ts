/** Plots as SVG without any script. They use the page's colors and include a table of their numbers. */
import { type Html, html, type Value } from './html.ts';
import { count, table } from './widgets.ts';

export interface PlotSeries {
  readonly name: string;
  /** A class of the style sheet, such as `allow`, `flag`, `deny`, `first`, `second`. */
  readonly color: string;
  readonly values: readonly (number | null)[];
}

export interface Plot {
  /** A description in words, for users who cannot see the plot. */
  readonly label: string;
  readonly kind: 'stack' | 'lines' | 'bars';
  readonly layers: readonly PlotSeries[];
  /** Labels below the plot, evenly spaced from its beginning to its end. */
  readonly ticks: readonly Value[];
  /** Formats a value. */
  readonly unit: (value: number) => string;
  /** A horizontal line, such as a quota. */
  readonly limit?: { readonly name: string; readonly value: number };
  /** The numbers as a table. */
  readonly rows: { readonly columns: readonly string[]; readonly rows: readonly (readonly Value[])[] };
}

const WIDTH = 1_000;
const HEIGHT = 200;

/** Rounds up to 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((step) => step * power >= value * 0.999_999) ?? 10) * power;
}

const short = (value: number): string => String(Math.round(value * 10) / 10);

/** Returns a figure: the plot, its legend, and its numbers as a table. */
export function plot(of: Plot): Html {
  const { layers, kind, unit, limit } = of;
  const columns = Math.max(1, ...layers.map(({ values }) => values.length));
  const totals = Array.from({ length: columns }, (_, i) =>
    kind === 'stack'
      ? layers.reduce((total, { values }) => total + (values[i] ?? 0), 0)
      : Math.max(0, ...layers.map(({ values }) => values[i] ?? 0)),
  );
  const top = roundUp(Math.max(limit?.value ?? 0, ...totals));
  const y = (value: number): number => HEIGHT - (HEIGHT * value) / top;
  const shapes =
    kind === 'stack'
      ? stack(layers, columns, y)
      : kind === 'bars'
        ? bars(layers, columns, y)
        : lines(layers, columns, y);
  return html`<figure class="plot"><div class="frame">
<div class="scale" aria-hidden="true"><span>${unit(top)}</span><span>${unit(top / 2)}</span><span>${unit(0)}</span></div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${of.label}">
<path class="grid" d="M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}"></path>
${shapes}
${limit !== undefined && html`<path class="limit" d="M0 ${short(y(limit.value))}H${WIDTH}"></path>`}
</svg>
<div class="ticks" aria-hidden="true">${of.ticks.map((tick) => html`<span>${tick}</span>`)}</div></div>
<figcaption>${layers.map(({ name, color }) => html`<span class="key ${color}">${name}</span>`)}${
    limit !== undefined && html`<span class="key limit">${limit.name}: ${count(limit.value)}</span>`
  }</figcaption>
<details><summary>The numbers</summary>${table(
    of.label,
    of.rows.columns.map((title, i) => (i > 0 ? { numbers: title } : title)),
    of.rows.rows,
  )}</details></figure>`;
}

function stack(layers: readonly PlotSeries[], columns: number, y: (value: number) => number): Html[] {
  const step = WIDTH / columns;
  const base = new Array<number>(columns).fill(0);
  return layers.map(({ color, values }) => {
    const top: string[] = [];
    const bottom: string[] = [];
    for (let i = 0; i < columns; i++) {
      const from = base[i]!;
      const to = from + (values[i] ?? 0);
      base[i] = to;
      const [left, right] = [short(i * step), short((i + 1) * step)];
      top.push(`${left} ${short(y(to))}L${right} ${short(y(to))}`);
      bottom.push(`${right} ${short(y(from))}L${left} ${short(y(from))}`);
    }
    return html`<path class="area ${color}" d="M${top.join('L')}L${bottom.reverse().join('L')}Z"></path>`;
  });
}

function bars(layers: readonly PlotSeries[], columns: number, y: (value: number) => number): Html[] {
  const step = WIDTH / columns;
  const gap = Math.min(2, step / 5);
  return layers.map(({ color, values }) => {
    const shapes = values.flatMap((value, i) =>
      value === null || value === 0
        ? []
        : [`M${short(i * step + gap)} ${HEIGHT}V${short(y(value))}H${short((i + 1) * step - gap)}V${HEIGHT}Z`],
    );
    return html`<path class="area ${color}" d="${shapes.join('')}"></path>`;
  });
}

function lines(layers: readonly PlotSeries[], columns: number, y: (value: number) => number): Html[] {
  const step = WIDTH / columns;
  return layers.map(({ color, values }) => {
    let isOpen = false;
    const points = values.map((value, i) => {
      if (value === null) {
        isOpen = false;
        return '';
      }
      const point = `${isOpen ? 'L' : 'M'}${short((i + 0.5) * step)} ${short(y(value))}`;
      isOpen = true;
      return point;
    });
    return html`<path class="line ${color}" d="${points.join('')}"></path>`;
  });
}

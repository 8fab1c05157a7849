/** Charts with two logarithmic axes, as one SVG picture without a library or a script in it. */

export interface Series {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Chart {
  readonly title: string;
  readonly series: readonly Series[];
}

const WIDTH = 780;
const HEIGHT = 300;
const MARGIN = { left: 70, right: 250, top: 36, bottom: 40 } as const;
const COLORS = [
  '#0b6e4f',
  '#c0392b',
  '#2c5aa0',
  '#b8860b',
  '#7d3c98',
  '#555555',
  '#117a8b',
  '#d35400',
  '#8d6e63',
  '#ad1457',
] as const;

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** 1, 2, 5 · 10^n from below `low` to above `high`. */
export function ticks(low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of [1, 2, 5]) found.push(step * 10 ** power);
  }
  const first = found.findLastIndex((tick) => tick <= low);
  const last = found.findIndex((tick) => tick >= high);
  return found.slice(Math.max(0, first), last + 1);
}

const short = (value: number): string =>
  value >= 1e6 ? `${value / 1e6} M` : value >= 1e4 ? `${value / 1e3} k` : `${value}`;

function drawChart(chart: Chart, top: number, colorOf: (name: string) => string): string {
  const points = chart.series.flatMap((series) => series.points);
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const yTicks = ticks(Math.min(...ys), Math.max(...ys));
  const [lowX, highX] = [Math.log(Math.min(...xs) * 0.8), Math.log(Math.max(...xs) * 1.25)];
  const [lowY, highY] = [Math.log(yTicks[0]!), Math.log(yTicks.at(-1)! * 1.05)];
  const x = (value: number): number =>
    MARGIN.left + ((Math.log(value) - lowX) / (highX - lowX)) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value: number): number =>
    top + HEIGHT - MARGIN.bottom - ((Math.log(value) - lowY) / (highY - lowY)) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const at = (value: number): string => value.toFixed(1);
  const out = [`<text x="${MARGIN.left}" y="${top + 20}" font-weight="bold">${escapeText(chart.title)}</text>`];
  for (const tick of yTicks) {
    out.push(`<path d="M${MARGIN.left} ${at(y(tick))}H${WIDTH - MARGIN.right}" stroke="#ddd"/>`);
    out.push(`<text x="${MARGIN.left - 8}" y="${at(y(tick) + 4)}" text-anchor="end">${short(tick)}</text>`);
  }
  for (const tick of [...new Set(xs)]) {
    out.push(`<text x="${at(x(tick))}" y="${top + HEIGHT - 18}" text-anchor="middle">${short(tick)}</text>`);
  }
  // Labels that would lie on each other are pushed apart, from the top down.
  const ends = chart.series
    .map((series) => ({ series, color: colorOf(series.name), y: y(series.points.at(-1)!.y) }))
    .sort((a, b) => a.y - b.y);
  let lowest = -Infinity;
  for (const { series, color, y: end } of ends) {
    const line = series.points.map((point) => `${at(x(point.x))} ${at(y(point.y))}`).join('L');
    out.push(`<path d="M${line}" fill="none" stroke="${color}" stroke-width="2"/>`);
    for (const point of series.points) {
      out.push(`<circle cx="${at(x(point.x))}" cy="${at(y(point.y))}" r="3" fill="${color}"/>`);
    }
    lowest = Math.max(lowest + 14, end);
    const label = `${series.name} ${short(Number(series.points.at(-1)!.y.toPrecision(3)))}`;
    out.push(`<text x="${WIDTH - MARGIN.right + 8}" y="${at(lowest + 4)}" fill="${color}">${escapeText(label)}</text>`);
  }
  return out.join('\n');
}

/** All charts, one below the other. Charts without a point are left out. */
export function drawCharts(charts: readonly Chart[]): string {
  const drawn = charts.filter((chart) => chart.series.some((series) => series.points.length > 0));
  const height = drawn.length * HEIGHT;
  // A name has one color in all charts.
  const names = [...new Set(drawn.flatMap(({ series }) => series.map(({ name }) => name)))];
  const colorOf = (name: string): string => COLORS[names.indexOf(name) % COLORS.length]!;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escapeText(drawn.map(({ title }) => title).join('; '))}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    ...drawn.map((chart, i) => drawChart(chart, i * HEIGHT, colorOf)),
    '</svg>',
    '',
  ].join('\n');
}

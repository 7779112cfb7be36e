/** Draws the cost of a turn by the length of the session. Its library is installed only for the bench, so its types are declared here. */

/** The cost of a turn by the length of the session, with one value a turn for each contender. */
export interface Chart {
  /** The name of the file, without its extension. */
  file: string;
  title: string;
  unit: string;
  series: readonly { who: string; values: readonly number[] }[];
}

interface Plot {
  plot(options: object): { outerHTML: string };
  lineY(data: readonly object[], options: object): object;
  text(data: readonly object[], options: object): object;
}

interface Point {
  readonly turn: number;
  readonly cost: number;
  readonly who: string;
}

/** A point is the median of this many consecutive turns. */
const STEP = 25;

/** The content of the chart's file. */
export async function drawChart({ title, unit, series }: Chart): Promise<string> {
  const Plot = await library<Plot>('@observablehq/plot');
  const { parseHTML } = await library<{ parseHTML: (html: string) => { document: object } }>('linkedom');
  const points = series.flatMap(({ who, values }) => thinned(values).map((point) => ({ ...point, who })));
  const labels = spaced(
    series.map(({ who }) => points.findLast((point) => point.who === who)!),
    points,
  );
  const at = { x: 'turn', y: 'cost' };
  const svg = Plot.plot({
    document: parseHTML('<html></html>').document,
    width: 720,
    height: 400,
    marginRight: 190,
    marginLeft: 50,
    style: { background: 'white', color: '#222', fontFamily: 'sans-serif', fontSize: '12px' },
    x: { label: 'turns in the session' },
    color: { range: ['#0b6e4f', '#3b6fd4', '#b23a48', '#8a5a00', '#6b3fa0'] },
    y: {
      type: 'log',
      label: `${title}, ${unit} (logarithmic)`,
      grid: true,
      tickFormat: (value: number) => String(value),
    },
    marks: [
      Plot.lineY(points, { ...at, stroke: 'who', strokeWidth: 2 }),
      Plot.text(labels, { ...at, text: 'who', fill: 'who', textAnchor: 'start', dx: 6 }),
    ],
  });
  const drawn = svg.outerHTML.replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" ');
  // Rounded to tenths of a pixel, to keep the pictures of the package small.
  return drawn.replaceAll(/\d+\.\d{4,}/g, (number) => String(Math.round(10 * Number(number)) / 10));
}

/** Heights of a label and of the axis, in pixels. */
const LABEL = 15;
const AXIS = 330;

/** Moves the labels so that they do not cover each other. */
function spaced(ends: readonly Point[], all: readonly Point[]): Point[] {
  const costs = all.map(({ cost }) => cost);
  const gap = (Math.max(...costs) / Math.min(...costs)) ** (LABEL / AXIS);
  let least = 0;
  return ends
    .toSorted((a, b) => a.cost - b.cost)
    .map((end) => {
      const cost = Math.max(end.cost, least);
      least = cost * gap;
      return { ...end, cost };
    });
}

function thinned(values: readonly number[]): Omit<Point, 'who'>[] {
  const points: Omit<Point, 'who'>[] = [];
  for (let start = 0; start + STEP <= values.length; start += STEP) {
    const window = values.slice(start, start + STEP).toSorted((a, b) => a - b);
    points.push({ turn: start + STEP, cost: window[STEP >> 1]! });
  }
  return points;
}

async function library<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}

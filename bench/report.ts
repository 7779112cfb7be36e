import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { Presets, SingleBar } from 'cli-progress';
import Table from 'cli-table3';
import { GENKIT_VERSION } from 'genkit/beta';
import pc from 'picocolors';
import { drawChart, type Chart } from './extra/chart.ts';
import type { Spread } from './measure.ts';

/** One line of the result: our figure and a peer's. Less is better in every figure. */
export interface Figure {
  name: string;
  unit:
    | 'ms'
    | 'bytes'
    | '1/s'
    | 'reads'
    | 'writes'
    | 'requests'
    | 'KB'
    | 'MB'
    | 'entries'
    | 'turns'
    | 'tokens'
    | 'messages'
    | 'characters'
    | 'snapshots'
    | '%';
  ours: Spread;
  /** Default: no comparison. */
  theirs?: Spread;
  /** The name of the peer. Default: Genkit. */
  peer?: string;
  goal?: { atMostOfTheirs?: number; atMost?: number; isEqual?: boolean };
}

/** A behaviour. `ours` and `theirs` have the actual result if the behaviour is missing. */
export interface Check {
  name: string;
  ours: string | undefined;
  theirs: string | undefined;
  /** The name of the peer, the same in all checks. */
  peer: string;
}

/** Collects figures and checks, shows the progress, prints the tables. */
export class Report {
  readonly #figures: Figure[] = [];
  readonly #charts: Chart[] = [];
  readonly #checks: Check[] = [];
  readonly #notes: string[] = [];
  #bar: SingleBar | undefined;

  /** Starts a phase with this number of steps. */
  start(phase: string, steps: number): void {
    this.#bar?.stop();
    this.#bar = new SingleBar(
      { format: `${phase.padEnd(34)} {bar} {percentage}% | {eta_formatted} left`, clearOnComplete: true },
      Presets.shades_classic,
    );
    this.#bar.start(steps, 0);
  }

  progress(steps: number): void {
    this.#bar?.increment(steps);
  }

  add(...figures: Figure[]): void {
    this.#figures.push(...figures);
  }

  chart(chart: Chart): void {
    this.#charts.push(chart);
  }

  /** Each check is a goal for our side. */
  addChecks(...checks: Check[]): void {
    this.#checks.push(...checks);
  }

  /** Prints a sentence below the tables. */
  note(sentence: string): void {
    this.#notes.push(sentence);
  }

  /**
   * Prints the tables, writes the figures and the charts; returns the names of the figures and checks that missed their goal.
   *
   * @param part The part of `latest.json` to replace; the other parts stay. Default: nothing is written. Timings of a busy machine are not
   *   written either.
   */
  async finish(folder: string, part: string | undefined): Promise<string[]> {
    this.#bar?.stop();
    const about = machine();
    if (this.#figures.length > 0) this.#printFigures();
    if (this.#checks.length > 0) this.#printChecks();
    for (const note of this.#notes) console.log(note);
    console.log(
      `${about.date}, Node ${about.node}, ${about.cores} cores, load ${about.load} at the start; genkit ${about.genkit}.`,
    );
    if (part !== undefined && (isMachineFree() || !this.#figures.some(({ unit }) => unit === 'ms'))) {
      await mkdir(folder, { recursive: true });
      const path = `${folder}/latest.json`;
      const known = await readFile(path, 'utf8').catch(() => '{}');
      const notes = this.#notes.length > 0 && { notes: this.#notes };
      const results = { ...about, figures: this.#figures, checks: this.#checks, ...notes };
      const all = { ...(JSON.parse(known) as object), [part]: results };
      await writeFile(path, `${JSON.stringify(all, null, 2)}\n`);
      for (const chart of this.#charts) await writeFile(`${folder}/${chart.file}.svg`, `${await drawChart(chart)}\n`);
    }
    const missed = [
      ...this.#figures.filter((figure) => !meetsGoal(figure)),
      ...this.#checks.filter(({ ours }) => ours !== undefined),
    ];
    return missed.map(({ name }) => name);
  }

  #printFigures(): void {
    const table = new Table({
      head: ['figure', 'ours', 'peer', 'peer / ours', 'goal'],
      style: { head: [], border: [] },
    });
    for (const figure of this.#figures) table.push(row(figure));
    console.log(table.toString());
    console.log('Medians, with (least to most).');
  }

  /** Prints Markdown, for the docs. */
  #printChecks(): void {
    console.log(`| behaviour | ours | ${this.#checks[0]!.peer} |\n|---|---|---|`);
    for (const { name, ours, theirs } of this.#checks) {
      console.log(`| ${name} | ${verdict(ours)} | ${verdict(theirs)} |`);
    }
  }
}

function verdict(wrong: string | undefined): string {
  return wrong === undefined ? 'yes' : `**no**: ${wrong}`;
}

function meetsGoal(figure: Figure): boolean {
  const { goal, ours, theirs } = figure;
  if (goal?.atMost !== undefined && ours.median > goal.atMost) return false;
  if (goal?.isEqual && ours.median !== theirs?.median) return false;
  return goal?.atMostOfTheirs === undefined || (theirs && ours.median <= goal.atMostOfTheirs * theirs.median) === true;
}

function row(figure: Figure): string[] {
  const { goal, ours, theirs, peer } = figure;
  const verdict = goal ? (meetsGoal(figure) ? pc.green('met') : pc.red('missed')) : '';
  return [
    figure.name,
    cell(ours, figure.unit),
    theirs ? `${cell(theirs, figure.unit)}${peer ? ` [${peer}]` : ''}` : '',
    ours.median === 0 || !theirs ? '' : (theirs.median / ours.median).toFixed(1),
    goal ? `${describeGoal(goal)} ${verdict}` : '',
  ];
}

function describeGoal(goal: NonNullable<Figure['goal']>): string {
  if (goal.isEqual) return 'equal';
  if (goal.atMost !== undefined) return `<= ${goal.atMost}`;
  const share = goal.atMostOfTheirs!;
  const part = Math.round(1 / share);
  return share < 1 && Math.abs(share * part - 1) < 0.01
    ? `<= 1/${part} of peer`
    : `<= ${Number(share.toFixed(2))} of peer`;
}

function cell(value: Spread, unit: string): string {
  const digits = value.median >= 100 ? 0 : 2;
  const range = value.count > 1 ? ` (${value.min.toFixed(digits)} to ${value.max.toFixed(digits)})` : '';
  return `${value.median.toFixed(digits)} ${unit}${range}`;
}

/** The average number of processes that wanted a core in the minute before the first figure. */
const LOAD = Number(loadavg()[0]!.toFixed(1));

/** Whether the machine had so little other work that the figures are useful. */
export function isMachineFree(): boolean {
  return LOAD <= 1.5 * cpus().length;
}

function machine(): { date: string; node: string; cores: number; load: number; genkit: string } {
  return {
    load: LOAD,
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    cores: cpus().length,
    genkit: GENKIT_VERSION,
  };
}

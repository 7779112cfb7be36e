/** A context report as text. Pure. */
import type { ContextReport, MessageData, MessageRange, OmissionReason, Section } from 'genkitx-agents/client';

export interface SectionRow {
  label: string;
  /** Its content: `5 tools`; `turns 6–10 · 12 messages`. */
  what: string;
  tokens: number;
  /** Its size compared with the largest section, 0 to 1. */
  share: number;
}

export interface SeenFacts {
  /** Estimated and counted tokens, and the limit. */
  total: string;
  sections: SectionRow[];
  /** A sentence for each part that was left out or shortened. */
  leftOut: string[];
  /** The turns that the summary covers: `turns 1–5`. Optional: no summary was sent. */
  summarized?: string;
}

const LABELS: Record<Section, [label: string, one: string, many: string]> = {
  instructions: ['Instructions', 'message', 'messages'],
  tools: ['Tools', 'tool', 'tools'],
  summary: ['Summary', 'summary', 'summaries'],
  history: ['Earlier turns', 'message', 'messages'],
  examples: ['Examples', 'example', 'examples'],
  artifacts: ['Artifacts', 'artifact', 'artifacts'],
  memory: ['Memory', 'fact', 'facts'],
  knowledge: ['Documents', 'document', 'documents'],
  prompt: ['This turn', 'message', 'messages'],
};

const REASONS: Record<OmissionReason, string> = {
  strategy: 'older than the turns that the agent sends',
  section: 'more than the section may take',
  window: 'more than the window holds',
  deadline: 'not found in time',
  failed: 'the lookup failed',
};

const COUNT = new Intl.NumberFormat();

/** @param messages The conversation, at least up to the turn. */
export function describeContext(report: ContextReport, messages: readonly MessageData[]): SeenFacts {
  const { sections, sent, dropped, changed = [], summary, inputTokens, estimatedTokens, maxTokens, calls } = report;
  const turns = (ranges: readonly MessageRange[]) => turnsIn(ranges, messages);
  const summarized = summary && turns([[0, summary.to]]);
  const largest = Math.max(1, ...Object.values(sections).map(({ tokens }) => tokens));
  // In the order in which they are sent.
  const names = (Object.keys(LABELS) as Section[]).filter((name) => sections[name]);
  const rows = names.map((name): SectionRow => {
    const { tokens, items } = sections[name]!;
    const [label, one, many] = LABELS[name];
    const counted = `${COUNT.format(items)} ${items === 1 ? one : many}`;
    const of = name === 'summary' ? summarized : name === 'history' && items > 0 && turns(sent);
    return {
      label,
      what: [of, name !== 'summary' && counted].filter(Boolean).join(' · '),
      tokens,
      share: tokens / largest,
    };
  });
  const omissions = names.flatMap((name) => {
    const { omitted = 0, reasons = [] } = sections[name]!;
    if (omitted === 0 && reasons.length === 0) return [];
    const [label, one, many] = LABELS[name];
    const which = name === 'history' && dropped.length > 0 ? ` (${turns(dropped)})` : '';
    const why = reasons.map((reason) => REASONS[reason]).join('; ');
    return [
      `${label}: ${omitted > 0 ? `${COUNT.format(omitted)} ${omitted === 1 ? one : many}${which}, ` : ''}${why}.`,
    ];
  });
  const shortened = changed.length > 0 ? [`Tool outputs of ${turns(changed)}: replaced by a short line.`] : [];

  const counted =
    inputTokens === undefined ? 'the model reported no count' : `the model counted ${COUNT.format(inputTokens)}`;
  const most = `About ${COUNT.format(estimatedTokens)} of at most ${COUNT.format(maxTokens)} tokens; ${counted}.`;
  const more = [
    calls > 1 && `This is the last of ${calls} calls of the model.`,
    report.hasRetried && 'The model refused a longer one.',
    report.isShortened && 'Not all turns are listed here.',
  ];
  return {
    total: [most, ...more].filter(Boolean).join(' '),
    sections: rows,
    leftOut: [...omissions, ...shortened],
    ...(summarized && { summarized }),
  };
}

/** The turns that the messages belong to, 1 for the first: `turn 3`, `turns 1–5, 8`. */
function turnsIn(ranges: readonly MessageRange[], messages: readonly MessageData[]): string {
  const numbers = new Set<number>();
  let turn = 0;
  messages.forEach(({ role }, position) => {
    if (role === 'user') turn++;
    if (ranges.some(([from, to]) => position >= from && position < to)) numbers.add(turn);
  });
  const runs: [first: number, last: number][] = [];
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run?.[1] === number - 1) run[1] = number;
    else runs.push([number, number]);
  }
  const listed = runs.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(', ');
  return `${numbers.size === 1 ? 'turn' : 'turns'} ${listed}`;
}

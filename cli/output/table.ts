import { characters, oneLine } from './text.ts';

/** A column of a table. */
export interface Column<T> {
  readonly name: string;
  readonly of: (row: T) => string | number | undefined;
  /** The most characters of a cell. Default: 72. */
  readonly most?: number;
}

/** Rows under the names of their columns; columns without a value in any row are left out. */
export function table<T>(rows: readonly T[], columns: readonly Column<T>[]): string {
  const filled = columns
    .map(({ name, of, most }) => ({
      name,
      cells: rows.map((row) => cell(of(row), most)),
      isNumber: rows.some(isNumberIn(of)),
    }))
    .filter(({ cells }) => cells.some((text) => text !== ''))
    .map((column) => ({ ...column, width: Math.max(column.name.length, ...column.cells.map(widthOf)) }));
  const line = (texts: readonly string[]): string =>
    `${texts
      .map((text, i) => {
        const { width, isNumber } = filled[i]!;
        const room = ' '.repeat(width - widthOf(text));
        return isNumber ? room + text : text + room;
      })
      .join('  ')
      .trimEnd()}\n`;
  const head = line(filled.map(({ name }) => name.toUpperCase()));
  return head + rows.map((_, i) => line(filled.map(({ cells }) => cells[i]!))).join('');
}

function isNumberIn<T>(of: Column<T>['of']): (row: T) => boolean {
  return (row) => typeof of(row) === 'number';
}

function cell(value: string | number | undefined, most?: number): string {
  if (value === undefined) return '';
  return typeof value === 'number' ? value.toLocaleString('en') : oneLine(value, most);
}

/** The width of a text in nearly all terminals. */
function widthOf(text: string): number {
  return characters(text).length;
}

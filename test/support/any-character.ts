import * as fc from 'fast-check';

const SURROGATES = 0x800;

/**
 * Any character, as `fc.string({ unit })` takes it. fast-check's own unit `binary` makes a table of all characters first, which takes each process
 * a second.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10_ffff - SURROGATES })
  .map((place) => String.fromCodePoint(place < 0xd800 ? place : place + SURROGATES));

export { auditing, type AccessEvent, type AuditingOptions } from '../src/privacy/audit/auditing.ts';
export { cloudKms, type KmsClient } from '../src/privacy/encryption/cloud-kms.ts';
export { envelope, type EnvelopeOptions, type KeyStore } from '../src/privacy/encryption/envelope.ts';
export { localKeys } from '../src/privacy/encryption/local-keys.ts';
export type { WrappingKeys } from '../src/privacy/encryption/wrapping-keys.ts';
export type { Cipher, Encryption, KeyOwner } from '../src/store/encryption/encryption.ts';
export {
  cloudDlp,
  type CloudDlpOptions,
  type DlpAnswer,
  type DlpClient,
  type DlpLikelihood,
} from '../src/privacy/rules/cloud-dlp.ts';
export type {
  CodePointRange,
  InspectedFinding,
  InspectedLocation,
  InspectedText,
  InspectedType,
  Int64,
} from '../src/privacy/rules/inspected.ts';
export {
  modelArmor,
  type ModelArmorAnswer,
  type ModelArmorClient,
  type ModelArmorFilterResult,
  type ModelArmorInspection,
  type ModelArmorOptions,
  type ModelArmorResults,
  type ModelArmorSdpResult,
} from '../src/privacy/rules/model-armor.ts';
export { HashNumbering, type NumberedHashes } from '../src/privacy/rules/numbering.ts';
export { piiRules, type PiiKind, type PiiRulesOptions } from '../src/privacy/rules/pii/pii-rules.ts';
export { redactText } from '../src/privacy/rules/redact-text.ts';
export { redactValue } from '../src/privacy/rules/redact-value.ts';
export { redacting } from '../src/privacy/redaction/redacting-store.ts';
export { redactingStreams } from '../src/privacy/redaction/streams/redacting-streams.ts';
export type { RedactingOptions } from '../src/privacy/redaction/options.ts';
export type * from '../src/privacy/rules/types.ts';
export {
  eraseUser,
  type EraseCounts,
  type EraseReceipt,
  type EraseUserOptions,
} from '../src/privacy/rights/erase-user.ts';
export { exportUser, type ExportUserOptions } from '../src/privacy/rights/export-user.ts';
export type {
  EndLine,
  ExportCounts,
  ExportedLine,
  MemoryLine,
  RecordLine,
  ScopeLine,
  SessionLine,
  SnapshotLine,
  UnreadableLine,
} from '../src/store/migrate/session-lines.ts';
export {
  applyRetention,
  holdSession,
  releaseSession,
  type ArchivedSession,
  type HeldSession,
  type RetentionOptions,
  type RetentionPolicy,
  type RetentionResult,
} from '../src/privacy/retention/apply-retention.ts';
export {
  archiveToBucket,
  archiveToDirectory,
  type ArchiveBucket,
  type ArchiveObject,
  type ArchiveOptions,
} from '../src/privacy/retention/archive.ts';
export type { UserMemories } from '../src/store/memory/user-memories.ts';

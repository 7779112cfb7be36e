export function Problem({ text, onDismiss }: { text: string; onDismiss?: () => void }) {
  return (
    <p className="notice problem" role="alert">
      {text}
      {onDismiss && (
        <button type="button" aria-label="Dismiss" onClick={onDismiss}>
          ×
        </button>
      )}
    </p>
  );
}

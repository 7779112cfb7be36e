const EXAMPLES = [
  'Where is order 1042?',
  'What are my orders?',
  'Refund order 1035, it is late.',
  'Write the monthly report.',
];

/** Shown in an empty conversation. */
export function Welcome({ onPick }: { onPick: (text: string) => void }) {
  return (
    <section className="welcome" aria-labelledby="welcome">
      <h2 id="welcome">How can we help?</h2>
      <p>
        Ask about an order or a refund. Every message is kept as a snapshot: go back to any of them and take another
        way, and both stay.
      </p>
      <ul>
        {EXAMPLES.map((text) => (
          <li key={text}>
            <button type="button" onClick={() => onPick(text)}>
              {text}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

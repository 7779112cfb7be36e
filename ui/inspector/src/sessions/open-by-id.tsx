import { useState, type FormEvent } from 'react';
import { usePage } from '../page.ts';

/** For a store that can't list its sessions. */
export function OpenById() {
  const { href } = usePage();
  const [id, setId] = useState('');
  const open = (event: FormEvent) => {
    event.preventDefault();
    if (id.trim()) location.hash = href(['snapshot', id.trim()]);
  };
  return (
    <form className="nothing open-by-id" onSubmit={open}>
      <p>This store can’t list its sessions. Enter the id of a snapshot to see it.</p>
      <p>
        <input
          aria-label="Snapshot id"
          placeholder="Snapshot id"
          value={id}
          onChange={(event) => setId(event.target.value)}
        />
        <button type="submit" className="primary">
          Open
        </button>
      </p>
    </form>
  );
}

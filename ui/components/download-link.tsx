/** Saves a document of the page as a file. */
export function DownloadLink({ name, text }: { name: string; text: string }) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <button type="button" aria-label={`Download ${name}`} onClick={save}>
      Download
    </button>
  );
}

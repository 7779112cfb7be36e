import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import styles from './styles/index.css?inline';

// Removes the token from the address: it is used already.
if (location.search) history.replaceState(undefined, '', `${location.pathname}${location.hash}`);

// The styles are a part of the script, which saves a request before the first view.
const sheet = new CSSStyleSheet();
sheet.replaceSync(styles);
document.adoptedStyleSheets = [sheet];

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root.');
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);

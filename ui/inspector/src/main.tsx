import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import styles from './styles/index.css?inline';

// The token has done its work: it does not stay in the address.
if (location.search) history.replaceState(undefined, '', `${location.pathname}${location.hash}`);

// With the program itself: one request less before the first session is seen.
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

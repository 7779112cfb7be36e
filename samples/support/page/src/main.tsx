import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { SignInGate } from './components/sign-in-gate.tsx';
import { RunningTurns } from './logic/running-turns.ts';

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root.');
const turns = new RunningTurns();
const takeUp = () => turns.takeUp();
createRoot(root).render(
  <StrictMode>
    <SignInGate onSignedIn={takeUp}>
      <App turns={turns} />
    </SignInGate>
  </StrictMode>,
);

import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** Builds the inspector's page into `dist/inspector`, which the package carries. All addresses are relative: it may be mounted at any path. */
export default defineConfig({
  root: path('.'),
  base: './',
  plugins: [react()],
  resolve: { alias: { 'genkitx-agents/client': path('../../entries/client.ts') } },
  build: { outDir: path('../../dist/inspector'), emptyOutDir: true, chunkSizeWarningLimit: 700 },
});

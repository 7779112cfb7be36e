import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** Builds the chat page into `dist/support-page`, which the sample's server serves. */
export default defineConfig({
  root: path('.'),
  base: './',
  plugins: [react()],
  resolve: {
    alias: {
      'genkitx-agents/client': path('../../../entries/client.ts'),
      'genkitx-agents/react': path('../../../entries/react.ts'),
    },
  },
  build: { outDir: path('../../../dist/support-page'), emptyOutDir: true, chunkSizeWarningLimit: 1000 },
  // `vite` on its own serves the page with hot reload, next to a server started by `npm start`.
  server: { proxy: { '/api': 'http://127.0.0.1:3400' } },
});

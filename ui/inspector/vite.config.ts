import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** Compresses the files to a quarter of their size. The inspector decompresses them when it first serves the page. */
const compressed: Plugin = {
  name: 'compressed',
  generateBundle: {
    order: 'post',
    handler(_, bundle) {
      for (const [fileName, file] of Object.entries(bundle)) {
        const source = brotliCompressSync(file.type === 'chunk' ? file.code : file.source);
        delete bundle[fileName];
        this.emitFile({ type: 'asset', fileName: `${fileName}.br`, source });
      }
    },
  },
};

/** Builds the inspector's page into `dist/inspector`, which is part of the package. All addresses are relative, so that it can be mounted at any path. */
export default defineConfig({
  root: path('.'),
  base: './',
  plugins: [react(), compressed],
  resolve: { alias: { 'genkitx-agents/client': path('../../entries/client.ts') } },
  build: {
    outDir: path('../../dist/inspector'),
    emptyOutDir: true,
    chunkSizeWarningLimit: 700,
    reportCompressedSize: false,
    // Compression takes most of the time.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
});

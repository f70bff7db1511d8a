import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// For `npm run dev`: the address of a `swarm serve`, and the token that the page of a browser does not have.
const server = process.env.SWARM_URL ?? 'http://127.0.0.1:7777';
const token = process.env.SWARM_TOKEN ?? '';

// The page is one script and one style sheet: `swarm export --html` puts both into one file.
export default defineConfig({
  base: '/',
  plugins: [react()],
  build: {
    assetsDir: 'assets',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    chunkSizeWarningLimit: 2000,
    target: 'es2022',
  },
  server: {
    proxy: {
      '/api': {
        target: server,
        changeOrigin: true,
        configure: (proxy) => {
          proxy.on('proxyReq', (request) => {
            request.setHeader('Authorization', `Bearer ${token}`);
            request.removeHeader('Origin');
            request.removeHeader('Referer');
          });
        },
      },
    },
  },
});

import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

// For `npm run dev`: the address of a `swarm serve`, and the token that the page of a browser does not have.
const server = process.env.SWARM_URL ?? 'http://127.0.0.1:7777';
const token = process.env.SWARM_TOKEN ?? '';

// Changes of files are coloured in these languages. The diff view brings a list of 190, most of the script's size.
const languages = ['bash', 'c', 'css', 'go', 'java', 'javascript', 'json', 'markdown', 'python', 'rust', 'typescript', 'xml', 'yaml'];

const fewLanguages: Plugin = {
  name: 'few-languages',
  load(id) {
    if (!id.endsWith('/lowlight/lib/all.js')) return undefined;
    return `${languages.map((one) => `import ${one} from 'highlight.js/lib/languages/${one}';`).join('\n')}\nexport const grammars = { ${languages.join(', ')} };`;
  },
};

// The page is one script and one style sheet: `swarm export --html` puts both into one file.
export default defineConfig({
  base: '/',
  plugins: [fewLanguages, react()],
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

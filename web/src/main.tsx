import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app';
import { enter } from './store/session';
import './styles/base.css';
import './styles/runs.css';
import './styles/run.css';
import './styles/graph.css';
import './styles/inspector.css';
import './styles/views.css';

void enter();
const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}

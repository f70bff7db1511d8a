// An agent that speaks the Agent Client Protocol. In each turn it asks whether it may deploy, and says what it was answered.
import { createInterface } from 'node:readline';

const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
const options = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
];
let prompt;
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, result } = JSON.parse(line);
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentInfo: { name: 'asks', version: '1' } } });
  if (method === 'session/new') send({ id, result: { sessionId: 's' } });
  if (method === 'session/prompt') {
    prompt = id;
    send({ id: `ask-${id}`, method: 'session/request_permission', params: { sessionId: 's', toolCall: { toolCallId: `${id}`, title: 'deploy', kind: 'execute', rawInput: { to: 'production' } }, options } });
  }
  if (method || !`${id}`.startsWith('ask-')) continue;
  const text = result?.outcome?.optionId === 'yes' ? 'it is deployed' : 'it was refused';
  send({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } });
  send({ id: prompt, result: { stopReason: 'end_turn' } });
}

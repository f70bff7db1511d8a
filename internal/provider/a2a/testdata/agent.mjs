// An agent that speaks A2A 0.3, by the JavaScript SDK of that version. It prints its port.
import { createServer } from 'node:http'
const { DefaultRequestHandler, InMemoryTaskStore, JsonRpcTransportHandler } = await import(process.env.A2A_SDK + '/dist/server/index.js')

console.error = () => {} // the SDK prints refused calls
const cancelled = new Map()
const says = {
  async execute({ userMessage, taskId, contextId, task }, bus) {
    const text = userMessage.parts.map((part) => part.text).join('')
    const message = (text) => ({ kind: 'message', messageId: crypto.randomUUID(), role: 'agent', taskId, contextId, parts: [{ kind: 'text', text }] })
    const state = (state, text) => {
      const final = state !== 'working'
      bus.publish({ kind: 'status-update', taskId, contextId, final, status: { state, message: text && message(text), timestamp: new Date().toISOString() } })
      if (final) bus.finished()
    }
    const chunk = (append, ...parts) =>
      bus.publish({ kind: 'artifact-update', taskId, contextId, append, artifact: { artifactId: 'out', parts } })
    const say = (text) => ({ kind: 'text', text })
    if (text === 'direct') {
      bus.publish({ ...message('at once'), taskId: undefined })
      return bus.finished()
    }
    if (!task) bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'submitted' }, history: [userMessage] })
    state('working', 'thinking')
    switch (text) {
      case 'paint':
        return state('input-required', 'Which colour?')
      case 'fail':
        return state('failed', 'out of paint')
      case 'wait':
        chunk(false, say('waiting'))
        await new Promise((done) => cancelled.set(taskId, done))
        return state('canceled')
      case 'parts':
        chunk(false, say('see '), { kind: 'data', data: { n: 1 } }, { kind: 'file', file: { uri: 'http://x/y', name: 'y' } }, { kind: 'file', file: { bytes: 'aGk=', name: 'z', mimeType: 'text/plain' } })
        return state('completed')
    }
    chunk(false, say('You said: '))
    chunk(true, say(text))
    state('completed')
  },
  async cancelTask(taskId) {
    console.log('cancelled')
    cancelled.get(taskId)?.()
  },
}

const card = {
  name: 'old', description: 'An agent of A2A 0.3.', version: '1.0', protocolVersion: '0.3.0', preferredTransport: 'JSONRPC',
  capabilities: { streaming: process.env.STREAMING !== 'no' }, defaultInputModes: ['text'], defaultOutputModes: ['text'], skills: [],
  securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } }, security: [{ bearer: [] }],
}
const handler = new JsonRpcTransportHandler(new DefaultRequestHandler(card, new InMemoryTaskStore(), says))
const server = createServer(async (request, answer) => {
  const json = (status, body) => answer.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  if (request.headers.authorization !== 'Bearer sesame-0123') return json(401, { error: 'who are you?' })
  if (request.url === '/.well-known/agent-card.json') return json(200, card)
  let body = ''
  for await (const piece of request) body += piece
  const result = await handler.handle(JSON.parse(body))
  if (!result[Symbol.asyncIterator]) return json(200, result)
  answer.writeHead(200, { 'Content-Type': 'text/event-stream' })
  try {
    for await (const event of result) answer.write(`data: ${JSON.stringify(event)}\n\n`)
  } catch (error) {
    answer.write(`event: error\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: null, error: error.toJSONRPCError() })}\n\n`)
  }
  answer.end()
})
server.listen(0, '127.0.0.1', () => {
  card.url = `http://127.0.0.1:${server.address().port}/`
  console.log(card.url)
})
process.stdin.resume().on('end', () => process.exit())

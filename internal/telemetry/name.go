package telemetry

// The names of the conventions for generative AI in this version of OpenTelemetry's semantic
// conventions. It is the last one with them; they moved to a repository of their own.
const schemaURL = "https://opentelemetry.io/schemas/1.41.0"

const (
	keyOperation    = "gen_ai.operation.name"
	keyProvider     = "gen_ai.provider.name"
	keyAgent        = "gen_ai.agent.name"
	keyModel        = "gen_ai.request.model"
	keyAnswered     = "gen_ai.response.model"
	keyFinish       = "gen_ai.response.finish_reasons"
	keyConversation = "gen_ai.conversation.id"
	keyWorkflow     = "gen_ai.workflow.name"
	keyInputTokens  = "gen_ai.usage.input_tokens"
	keyOutputTokens = "gen_ai.usage.output_tokens"
	keyCachedTokens = "gen_ai.usage.cache_read.input_tokens"
	keyTokenType    = "gen_ai.token.type"
	keyInput        = "gen_ai.input.messages"
	keyOutput       = "gen_ai.output.messages"
	keyTool         = "gen_ai.tool.name"
	keyToolCall     = "gen_ai.tool.call.id"
	keyToolInput    = "gen_ai.tool.call.arguments"
	keyToolOutput   = "gen_ai.tool.call.result"
	keyError        = "error.type"

	invokeWorkflow = "invoke_workflow"
	invokeAgent    = "invoke_agent"
	executeTool    = "execute_tool"
	chat           = "chat"

	metricTokens   = "gen_ai.client.token.usage"
	metricDuration = "gen_ai.client.operation.duration"
)

// Names of our own.
const (
	keyRun       = "swarm.run"
	keyKind      = "swarm.run.kind"
	keyReplay    = "swarm.run.replay"
	keyStatus    = "swarm.status"
	keyExit      = "swarm.exit"
	keyTurn      = "swarm.turn"
	keyTask      = "swarm.task"
	keyIteration = "swarm.iteration"
	keyAttempt   = "swarm.attempt"
	keyStarts    = "swarm.starts" // of a turn: more than 1 if a crash has cut it
	keyOutcome   = "swarm.outcome"
	keyReachedBy = "swarm.provider" // the provider's name in the file
	keyCost      = "swarm.usage.usd"
	keyEstimated = "swarm.usage.estimated"
	keyEnvelope  = "swarm.envelope.id"
	keyEnvKind   = "swarm.envelope.kind"
	keyEnvFrom   = "swarm.envelope.from"
	keyEnvTo     = "swarm.envelope.to"
	keySeq       = "swarm.seq"
	keyApproval  = "swarm.approval.id"
	keyApproved  = "swarm.approval.ok"
	keyReason    = "swarm.reason"

	metricMail  = "swarm.mail.delivery"
	metricTurns = "swarm.turns"
	metricRuns  = "swarm.runs"
)

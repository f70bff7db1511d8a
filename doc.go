// Package swarm holds the nouns of the module: what a team of agents is made of, and what its log
// records about it.
//
// A [Plan] says what is to be done: [Task]s with dependencies, assigned to [Agent]s. Providers
// reach the agents. Executing a plan makes a run, and a run is its log: a sequence of [Event]s that
// a [Log] stores. Larger texts lie beside the events, under their [Hash].
//
// A task is done in turns. A turn is one call of the agent's provider: one prompt in, one output
// out. Each turn is two events, one when it starts and one when it ends. Agents pass work on by
// reading each other's outputs and by sending [Envelope]s. Every screen, table and API answer is a
// fold of the log.
//
// The package imports the standard library only and does no I/O. Every other package of the module
// imports it.
package swarm

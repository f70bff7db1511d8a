// Package swarm holds the nouns: what a team of agents is made of, and what is written down about it.
//
// A [Plan] says what is to be done: [Task]s with dependencies, done by [Agent]s, which are reached through providers.
// Doing it makes a run, and a run is its log: a sequence of [Event]s that a [Log] keeps, with the larger texts beside them
// under their [Hash]. A task is done in turns. Each turn is one call of the agent's provider with one prompt and one output,
// and each is two events, one when it starts and one when it ends. Agents pass work on by reading each other's outputs and by
// sending [Envelope]s. Whatever is shown to anybody is a fold of the log.
//
// The package imports the standard library only, does no I/O, and everything else in the module imports it.
package swarm

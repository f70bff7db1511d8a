module workflowcheck

go 1.26.0

require (
	go.temporal.io/sdk/contrib/tools/workflowcheck v0.3.0
	golang.org/x/tools v0.50.0
)

require (
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
)

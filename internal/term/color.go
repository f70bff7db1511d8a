package term

import (
	"charm.land/lipgloss/v2"

	"swarm"
)

// Color decides whether to print in colour: the flag --color first (always, never or auto), then the environment, then whether
// the output is a terminal.
func Color(flag string, getenv func(string) string, terminal bool) (bool, error) {
	switch flag {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto", "":
	default:
		return false, swarm.Errorf(swarm.BadInput, "%q is no value for --color", flag).WithHint("%s", swarm.DidYouMean(flag, []string{"auto", "always", "never"}))
	}
	switch force := getenv("CLICOLOR_FORCE"); {
	case getenv("NO_COLOR") != "":
		return false, nil
	case force != "" && force != "0":
		return true, nil
	case getenv("CLICOLOR") == "0", getenv("TERM") == "dumb":
		return false, nil
	}
	return terminal, nil
}

// A paint is what gives text its colour; without colour it leaves it as it is.
type paint struct{ on bool }

func (p paint) with(s lipgloss.Style, text string) string {
	if !p.on || text == "" {
		return text
	}
	return s.Render(text)
}

func (p paint) bold(text string) string { return p.with(lipgloss.NewStyle().Bold(true), text) }
func (p paint) dim(text string) string  { return p.with(lipgloss.NewStyle().Faint(true), text) }

func (p paint) warn(text string) string {
	return p.with(lipgloss.NewStyle().Foreground(lipgloss.Yellow), text)
}

// status gives text the colour of a status.
func (p paint) status(s swarm.Status, text string) string {
	style := lipgloss.NewStyle()
	switch s {
	case swarm.Completed:
		style = style.Foreground(lipgloss.Green)
	case swarm.Failed:
		style = style.Foreground(lipgloss.Red).Bold(true)
	case swarm.Running, swarm.Streaming:
		style = style.Foreground(lipgloss.Cyan)
	case swarm.Waiting, swarm.Blocked, swarm.Pausing, swarm.Paused, swarm.Interrupted:
		style = style.Foreground(lipgloss.Yellow)
	case swarm.Pending, swarm.Skipped, swarm.Cancelled, swarm.Idle:
		style = style.Faint(true)
	default:
		return text
	}
	return p.with(style, text)
}

// task gives text the colour of the i-th task. Red is kept for failures.
func (p paint) task(i int, text string) string {
	colors := []lipgloss.Style{
		lipgloss.NewStyle().Foreground(lipgloss.Cyan), lipgloss.NewStyle().Foreground(lipgloss.Magenta), lipgloss.NewStyle().Foreground(lipgloss.Blue),
		lipgloss.NewStyle().Foreground(lipgloss.Yellow), lipgloss.NewStyle().Foreground(lipgloss.Green), lipgloss.NewStyle().Foreground(lipgloss.BrightMagenta),
	}
	return p.with(colors[i%len(colors)], text)
}

// Package subtask reads how a query is divided: the supervisor's answer, or a person's file. Both
// have the form {"subtasks": [{"id", "description", "role", "depends_on"}]}, where only the
// description is needed.
package subtask

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/modeljson"
	"swarm/internal/plan"
	"swarm/internal/strictjson"
)

// Limits of one subtask.
const (
	maxDescription = 8 << 10 // bytes
	maxID          = 64      // bytes
)

// ReadAnswer reads the subtasks in a model's answer. Fields that we do not know are ignored.
func ReadAnswer(answer string) ([]swarm.Subtask, error) {
	all, _, err := read(answer)
	if err == nil {
		err = complete(all, nil)
	}
	if err != nil {
		return nil, asModel(err)
	}
	return all, nil
}

// A Message is what the supervisor writes to an agent when it plans anew.
type Message struct {
	To   string `json:"to"`
	Text string `json:"message"`
}

// ReadReplan reads what the supervisor says when it plans anew: further subtasks, which may depend on
// the known ones, and messages. There may be none of both. A subtask gets another id if its own is known.
func ReadReplan(answer string, known []string) (all []swarm.Subtask, messages []Message, err error) {
	all, o, err := read(answer)
	if err != nil {
		return nil, nil, asReplan(err)
	}
	rename(all, known)
	if len(all) > 0 {
		err = complete(all, known)
	}
	if err == nil && o.Has("messages") && json.Unmarshal(o.Fields["messages"], &messages) != nil {
		err = swarm.Errorf(swarm.Unexpected, "the field %q must be a list of objects", "messages")
	}
	for i, m := range messages {
		if err == nil && (strings.TrimSpace(m.To) == "" || strings.TrimSpace(m.Text) == "") {
			err = swarm.Errorf(swarm.Unexpected, "message %d has no receiver or no text", i+1)
		}
	}
	return all, messages, asReplan(err)
}

// asReplan is asModel for an answer that plans anew.
func asReplan(err error) error {
	if err == nil {
		return nil
	}
	return swarm.Errorf(swarm.Unexpected, "%w", err).
		WithHint(`return ONLY one JSON object, such as {"subtasks": [{"description": "…"}], "messages": [{"to": "NAME", "message": "…"}]}; both lists may be empty`)
}

// rename gives the subtasks whose id is known, or missing, an id of their own.
func rename(all []swarm.Subtask, known []string) {
	taken := map[string]bool{}
	for _, id := range known {
		taken[id] = true
	}
	for i := range all {
		all[i].ID = strings.TrimSpace(all[i].ID)
	}
	next := len(known)
	for i := range all {
		s := &all[i]
		if s.ID != "" && !taken[s.ID] {
			continue
		}
		before := s.ID
		for s.ID == "" || taken[s.ID] {
			next++
			s.ID = "t" + strconv.Itoa(next)
		}
		taken[s.ID] = true
		for j := range all { // the new subtasks mean each other
			if k := slices.Index(all[j].DependsOn, before); before != "" && k >= 0 {
				all[j].DependsOn[k] = s.ID
			}
		}
	}
}

// read reads the subtasks in a model's answer as they are, and the object that has them.
func read(answer string) ([]swarm.Subtask, modeljson.Object, error) {
	o, err := modeljson.Find(answer, "subtasks")
	if err != nil {
		return nil, o, err
	}
	var list []map[string]json.RawMessage
	if !o.Has("subtasks") || json.Unmarshal(o.Fields["subtasks"], &list) != nil {
		return nil, o, swarm.Errorf(swarm.Unexpected, "the field %q must be a list of objects", "subtasks")
	}
	all := make([]swarm.Subtask, len(list))
	for i, fields := range list {
		known := map[string]json.RawMessage{}
		for _, name := range names {
			if value, ok := fields[name]; ok {
				known[name] = value
			}
		}
		if err := json.Unmarshal(swarm.Encode(known), &all[i]); err != nil {
			return nil, o, swarm.Errorf(swarm.Unexpected, "subtask %d cannot be read: %w", i+1, err)
		}
	}
	return all, o, nil
}

// asModel makes an error one that is worth another answer, with the form that is wanted.
func asModel(err error) error {
	return swarm.Errorf(swarm.Unexpected, "%w", err).
		WithHint(`return ONLY one JSON object, such as {"subtasks": [{"id": "t1", "description": "…", "depends_on": []}]}`)
}

// Text returns subtasks as the JSON that a person edits.
func Text(all []swarm.Subtask) []byte {
	type shown struct {
		ID          string   `json:"id"`
		Description string   `json:"description"`
		Role        string   `json:"role,omitempty"`
		DependsOn   []string `json:"depends_on"`
	}
	list := make([]shown, len(all))
	for i, s := range all {
		list[i] = shown{s.ID, s.Description, s.Role, append([]string{}, s.DependsOn...)}
	}
	var text bytes.Buffer
	_ = json.Indent(&text, swarm.Encode(map[string]any{"subtasks": list}), "", "  ") // it has just been made
	text.WriteByte('\n')
	return text.Bytes()
}

// CheckRole returns an error if a subtask names a role that there is not.
func CheckRole(roles []swarm.Agent, s swarm.Subtask) *swarm.Error {
	names := make([]string, len(roles))
	for i := range roles {
		if names[i] = roles[i].Name; strings.EqualFold(names[i], s.Role) {
			return nil
		}
	}
	switch err := swarm.Errorf(swarm.BadInput, "the subtask %q has the role %s, and there is no agent of this name", s.ID, swarm.Quote(s.Role)); {
	case s.Role == "":
		return nil
	case len(names) == 0:
		return err.WithHint("the compose file has no agents; leave the role out, or write agents: {%s: {}}", s.Role)
	case swarm.Nearest(s.Role, names) != "":
		return err.WithHint("%s There are %s", swarm.DidYouMean(s.Role, names), strings.Join(names, ", "))
	default:
		return err.WithHint("%s", swarm.DidYouMean(s.Role, names))
	}
}

// ReadFile reads the subtasks that a person wrote, strictly.
func ReadFile(text []byte) ([]swarm.Subtask, error) { return ReadEdit(text, nil) }

// ReadEdit reads the subtasks that a person changed. They may depend on the known ones, whose ids they
// cannot have.
func ReadEdit(text []byte, known []string) ([]swarm.Subtask, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // editors of Windows begin a file with it
	whole := strictjson.ReadObject("the plan", text, MaxFile, "subtasks")
	whole.Need("subtasks")
	var all []swarm.Subtask
	for _, o := range whole.Objects("subtasks", names...) {
		o.Need("description")
		all = append(all, swarm.Subtask{ID: o.Text("id"), Description: o.Text("description"), Role: o.Text("role"), DependsOn: o.Texts("depends_on")})
	}
	if err := whole.Err(); err != nil {
		return nil, err
	}
	for _, s := range all {
		if slices.Contains(known, s.ID) {
			return nil, swarm.Errorf(swarm.BadInput, "%s is the id of an earlier subtask", swarm.Quote(s.ID)).WithHint("choose another id")
		}
	}
	return all, complete(all, known)
}

// MaxFile is the largest plan of a person, in bytes.
const MaxFile = 1 << 20

var names = []string{"id", "description", "role", "depends_on"}

// complete names the subtasks that have no id, and checks all of them. They may depend on known ones.
func complete(all []swarm.Subtask, known []string) error {
	if len(all) == 0 {
		return swarm.Errorf(swarm.BadInput, "there are no subtasks").WithHint("write at least one")
	}
	at := map[string]int{}
	for i := range all {
		s := &all[i]
		s.ID, s.Description = strings.TrimSpace(s.ID), strings.TrimSpace(s.Description)
		if s.ID == "" {
			s.ID = "t" + strconv.Itoa(i+1)
		}
		switch before, twice := at[s.ID]; {
		case twice:
			return swarm.Errorf(swarm.BadInput, "subtasks %d and %d have the same id %s", before+1, i+1, swarm.Quote(s.ID))
		case len(s.ID) > maxID:
			return swarm.Errorf(swarm.BadInput, "the id of subtask %d has %d bytes; %d are allowed", i+1, len(s.ID), maxID)
		case s.Description == "":
			return swarm.Errorf(swarm.BadInput, "subtask %s has no description", swarm.Quote(s.ID))
		case len(s.Description) > maxDescription:
			return swarm.Errorf(swarm.BadInput, "the description of subtask %s has %d bytes; %d are allowed",
				swarm.Quote(s.ID), len(s.Description), maxDescription)
		}
		at[s.ID] = i
	}
	return checkOrder(all, at, known)
}

// checkOrder refuses dependencies on subtasks that do not exist, and cycles.
func checkOrder(all []swarm.Subtask, at map[string]int, known []string) error {
	ids := slices.Clone(known)
	for i := range all {
		ids = append(ids, all[i].ID)
	}
	for i := range all {
		s := &all[i]
		slices.Sort(s.DependsOn)
		s.DependsOn = slices.Compact(s.DependsOn)
		for _, need := range s.DependsOn {
			if !slices.Contains(ids, need) {
				return swarm.Errorf(swarm.BadInput, "subtask %s depends on %s, which does not exist", swarm.Quote(s.ID), swarm.Quote(need)).
					WithHint("%s", swarm.DidYouMean(need, ids))
			}
		}
	}
	cycle := plan.Cycle(len(all), func(i int) (needs []int) {
		for _, need := range all[i].DependsOn {
			if k, ok := at[need]; ok {
				needs = append(needs, k)
			}
		}
		return needs
	})
	if cycle == nil {
		return nil
	}
	var path []string
	for _, i := range append(cycle, cycle[0]) {
		path = append(path, all[i].ID)
	}
	return swarm.Errorf(swarm.BadInput, "subtasks wait for each other: %s", strings.Join(path, " → ")).
		WithHint("take out one of these dependencies")
}

// Cap keeps the first subtasks, and says which ones have no room. Nothing waits for those.
func Cap(all []swarm.Subtask, most int) (kept []swarm.Subtask, dropped []string) {
	if len(all) <= most {
		return all, nil
	}
	for _, s := range all[most:] {
		dropped = append(dropped, s.ID)
	}
	kept = slices.Clone(all[:most])
	for i := range kept {
		kept[i].DependsOn = slices.DeleteFunc(slices.Clone(kept[i].DependsOn), func(id string) bool { return slices.Contains(dropped, id) })
	}
	return kept, dropped
}

package turn

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/excerpt"
	"swarm/internal/mail"
)

const (
	// messagesVariable tells a program where the folder is.
	messagesVariable = "SWARM_MESSAGES"
	// messagePause is the time between two looks into the folder.
	messagePause = 200 * time.Millisecond
)

// A file of the message folder and an envelope are the same message if they have the same sender and id.
// A file without an id gets one from its name and its hash. So the folder and the log say together what
// is left to do, after a crash too:
//   - A file whose message the log does not have is sent, in its sender's next turn.
//   - A message to an agent at a desk that no file has becomes one, when the agent's turn begins.
//   - A file whose message its receiver has consumed moves to taken/.

// writesFiles reports whether the agent of a turn has the message folder: it works at a desk in a team.
func (r *Runner) writesFiles(w *work) bool {
	return w.handle != nil && w.worker() != "" && r.AgentAPI.Joined(w.c.Agent) &&
		w.plan.agents[desk.MessagesFolder] == nil && w.plan.tasks[desk.MessagesFolder] == nil // a desk of that name has the folder's place
}

// messageFolder opens the folder, again if a worker has deleted or replaced it: one worker must not
// keep the others from their mail. Other turns may be using the broken one, so it is closed later.
func (r *Runner) messageFolder() (*desk.Messages, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.messages); n > 0 && !r.messages[n-1].Broken() {
		return r.messages[n-1], nil
	}
	folder, err := desk.OpenMessages(r.messagesPath())
	if err != nil {
		return nil, err
	}
	if r.messages = append(r.messages, folder); len(r.messages) > 2 {
		_ = r.messages[0].Close() // nothing was written through it
		r.messages = r.messages[1:]
	}
	return folder, nil
}

// messagesPath is the path of the message folder of the run.
func (r *Runner) messagesPath() string { return filepath.Join(r.Desks, desk.MessagesFolder) }

// exchangeFiles writes the mail of the turn into files, and sends the files that the agent writes until
// the returned function is called.
func (r *Runner) exchangeFiles(ctx context.Context, w *work) (end func(), err error) {
	if _, err := r.messageFolder(); err != nil {
		return nil, err
	}
	w.byFiles, w.desk.Messages = true, r.messagesPath()
	r.takeRead(w, w.inputs.From) // what a crash left
	if err := r.writeFiles(w); err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(messagePause); ; {
			select {
			case <-working.Done():
				tick.Stop()
				return
			case <-tick.C:
				r.sendFiles(ctx, w)
			}
		}
	}()
	return func() {
		stop()
		<-ended
		r.sendFiles(ctx, w) // what the worker wrote last
		if folder, err := r.messageFolder(); err == nil {
			refused, _ := folder.RefuseUnreadable(w.c.Agent)
			r.tellRefused(w, refused)
		}
	}, nil
}

// writeFiles writes the messages of the turn's prompt that no file has.
func (r *Runner) writeFiles(w *work) error {
	items, err := r.AgentAPI.Mail(w.c.Agent, w.inputs)
	if err != nil || len(items) == 0 {
		return err
	}
	folder, err := r.messageFolder()
	if err != nil {
		return err
	}
	files, _, err := folder.Receive(time.Now(), nil)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, f := range files {
		there[refOf(f)] = true
	}
	for _, item := range items {
		if !there[item.Ref()] {
			if _, err := folder.Send(desk.MessageOf(item.Envelope)); err != nil {
				return err
			}
		}
	}
	return nil
}

// refOf identifies the message of a file.
func refOf(f desk.Received) string {
	e := swarm.Envelope{FromNodeID: f.From, ID: draftOf(f).ID}
	return e.Ref()
}

// draftOf is the message of a file, as its sender hands it in.
func draftOf(f desk.Received) mail.Draft {
	e := f.Envelope(f.Name)
	d := mail.Draft{From: e.FromNodeID, To: e.ToNodeID, Message: e.Payload.Message, Structured: e.Payload.Structured,
		Artifacts: e.Payload.Artifacts, Status: e.Payload.Status, Response: e.Payload.Response, ContextRef: e.ContextRef,
		Type: f.Type, ID: e.ID, Seq: f.Name.Number, File: f.Name.String()}
	if e.Kind == swarm.Signal {
		d.Type = string(swarm.Signal)
	}
	if f.Fields["id"] == nil { // the name alone may come again in another run of the same folder
		d.ID += "." + f.SHA256[:12]
	}
	return d
}

// sendFiles sends the files of the turn's agent that the log does not have. A file that breaks the rules
// is refused, and a notice says so. So is one of a sender that is not at a desk.
func (r *Runner) sendFiles(ctx context.Context, w *work) {
	folder, err := r.messageFolder()
	if err != nil {
		return // it is opened again
	}
	files, refused, _ := folder.Receive(time.Now(), nil) // a folder that cannot be read is read again
	for _, f := range files {
		err := r.sendFile(ctx, w, f)
		if err == nil || ctx.Err() != nil || swarm.KindOf(err) == swarm.Storage {
			continue
		}
		if folder.Refuse(f.Name, err) == nil { // if it cannot be moved now, it is refused again
			refused = append(refused, desk.Refusal{File: f.Name.String(), Why: err})
		}
	}
	r.tellRefused(w, refused)
}

// sendFile sends a file, unless the log has its message or another turn sends it.
func (r *Runner) sendFile(ctx context.Context, w *work, f desk.Received) error {
	stored, known, err := r.Log.Find(swarm.MailKey(refOf(f)))
	switch {
	case err != nil:
		return nil //nolint:nilerr // it is looked for again
	case known && f.From == w.c.Agent:
		return r.sameMessage(f, stored)
	case known:
		return nil
	case f.From == w.c.Agent:
		return w.handle.SendFile(ctx, draftOf(f))
	}
	return r.notAtDesk(w, f.From)
}

// sameMessage is the error for a file that has the id of another message.
func (r *Runner) sameMessage(f desk.Received, stored swarm.Event) error {
	e, err := swarm.Body[swarm.Envelope](&stored)
	if err != nil || f.Fields["id"] == nil {
		return nil //nolint:nilerr // it was readable when it was stored
	}
	same := e.ToNodeID == f.To && r.clean(f.Envelope(f.Name).Payload.Message) == e.Payload.Message
	if same {
		return nil
	}
	return swarm.Errorf(swarm.BadInput, "the id %s is that of another message", swarm.Quote(e.ID)).
		WithHint("give each message an id of its own, or leave it out")
}

// maxTold is the number of refused files that one notice names.
const maxTold = 5

// tellRefused records that files were refused. Their senders may not look into refused/.
func (r *Runner) tellRefused(w *work, refused []desk.Refusal) {
	if len(refused) == 0 {
		return
	}
	var all []string
	for _, one := range refused {
		all = append(all, fmt.Sprintf("%s (%s)", one.File, one.Why))
	}
	r.notice(w, "message files were refused: "+excerpt.List(all, maxTold),
		"each is in "+filepath.Join(r.messagesPath(), desk.RefusedFolder)+", beside a .error with the reason")
}

// notAtDesk is the error for a sender that writes no files; nil = it does.
func (r *Runner) notAtDesk(w *work, sender string) error {
	a := w.plan.agents[sender]
	if a != nil && (&swarm.Task{}).WorkerOf(a) != "" {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "%s works at no desk of this run, so no file is from it", sender).
		WithHint("a person writes with swarm send; an agent writes under its own name")
}

// takeRead moves the files of messages that the turn's agent has consumed, up to an event, to taken/.
func (r *Runner) takeRead(w *work, upto int64) {
	if !w.byFiles {
		return
	}
	folder, err := r.messageFolder()
	if err != nil {
		return // the next turn tries again
	}
	files, _, _ := folder.Receive(time.Now(), nil)
	for _, f := range files {
		if f.To != w.c.Agent {
			continue
		}
		if e, ok, err := r.Log.Find(swarm.MailKey(refOf(f))); err == nil && ok && e.Seq <= upto {
			_ = folder.Take(f.Name) // the next turn tries again
		}
	}
}

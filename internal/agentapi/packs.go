package agentapi

import (
	"context"
	"strings"

	"swarm"
	"swarm/internal/contextpack"
	"swarm/internal/mail"
)

// shownLeft limits how many left-out parts of a pack the agent is told of. The log has all.
const shownLeft = 30

// PackStored makes the event that stores a pack, and the pack's text. The caller appends both in
// one batch. by names the agent that stores it.
func PackStored(by swarm.Event, name string, p contextpack.Pack, left []swarm.LeftOut) (swarm.Event, []byte) {
	text := p.JSON()
	it := swarm.Artifact{Ref: p.Ref(), Kind: contextPack, Name: name, Hash: swarm.HashOf(text), Bytes: int64(len(text)), Tokens: p.Tokens(), LeftOut: left}
	by.Kind, by.Key, by.Data = swarm.ArtifactStored, ArtifactKey(it.Ref), swarm.Encode(it)
	return by, text
}

// putPack stores a context pack: the agent's draft merged after the packs that it extends, and
// reduced to the size limit.
func (h *TurnHandle) putPack(ctx context.Context, name string, content []byte) (putResult, error) {
	s := h.service
	name, err := s.title(name)
	if err != nil {
		return putResult{}, err
	}
	d, err := contextpack.ReadDraft(content)
	if err != nil {
		return putResult{}, err
	}
	if s.Redact != nil {
		d.Pack = d.Redacted(s.Redact)
	}
	if err := s.fillIn(&d.Pack, h.Agent); err != nil {
		return putResult{}, err
	}
	p, left, err := s.extend(d)
	if err != nil {
		return putResult{}, err
	}
	for _, a := range p.Artifacts {
		if _, err := s.artifact(a.Ref()); err != nil {
			return putResult{}, err
		}
	}
	p, more, err := contextpack.Fit(p, contextpack.MaxTokens)
	if err == nil {
		p, err = p.Identified()
	}
	if err != nil {
		return putResult{}, err
	}
	left = append(left, more...)
	e, text := PackStored(h.by(), name, p, left)
	_, before, err := h.append(ctx, swarm.Batch{Events: []swarm.Event{e}, Bodies: [][]byte{text}})
	if err == nil && before != nil { // another creation time does not make another pack
		first, err := s.Pack(p.Ref())
		if err != nil {
			return putResult{}, err
		}
		if !contextpack.Same(first, p) {
			return putResult{}, &swarm.Error{Kind: swarm.BadInput, Msg: "packId " + swarm.Quote(p.PackID), Err: swarm.ErrConflict, Hint: "leave packId out, or choose another one"}
		}
	}
	if err != nil {
		return putResult{}, err
	}
	answer := putResult{Ref: p.Ref(), Tokens: p.Tokens(), LeftOut: left}
	if len(left) > shownLeft {
		answer.LeftOut, answer.More = left[:shownLeft], len(left)-shownLeft
	}
	return answer, nil
}

// fillIn fills in the fields that the run knows, and refuses a draft that contradicts them.
func (s *Service) fillIn(p *contextpack.Pack, agent string) error {
	s.mu.Lock()
	err := s.follow()
	team := s.team.Rules
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, is := range []struct {
		field, value string
		said         *string
	}{{"runId", string(s.Run), &p.RunID}, {"nodeId", agent, &p.NodeID}, {"globalMode", string(team.Phase), (*string)(&p.GlobalMode)}, {"nodeMode", string(team.Mode), (*string)(&p.NodeMode)}} {
		if *is.said != "" && *is.said != is.value {
			return swarm.Errorf(swarm.BadInput, "%s is %s, and not %s", is.field, is.value, swarm.Quote(*is.said)).WithHint("leave %s out", is.field)
		}
		*is.said = is.value
	}
	if p.CreatedAt.IsZero() {
		p.CreatedAt = s.now().UTC()
	}
	return nil
}

// extend merges a draft after the packs that it extends.
func (s *Service) extend(d contextpack.Draft) (contextpack.Pack, []swarm.LeftOut, error) {
	var all []contextpack.Pack
	for _, ref := range d.Extends {
		p, err := s.Pack(strings.TrimSpace(ref))
		if err != nil {
			return p, nil, err
		}
		all = append(all, p)
	}
	p, left := contextpack.Merge(append(all, d.Pack)...)
	p.PackID, p.RunID, p.NodeID, p.CreatedAt = d.PackID, d.RunID, d.NodeID, d.CreatedAt
	return p, left, nil
}

// Pack reads a context pack of this run.
func (s *Service) Pack(ref string) (contextpack.Pack, error) {
	it, err := s.findPack(ref)
	if err != nil {
		return contextpack.Pack{}, err
	}
	text, err := s.Log.Body(it.Hash)
	if err != nil {
		return contextpack.Pack{}, err
	}
	return contextpack.Read(text)
}

// findPack finds a context pack of this run by its ref.
func (s *Service) findPack(ref string) (swarm.Artifact, error) {
	if mail.IsPack(ref) {
		it, err := s.artifact(ref)
		if swarm.KindOf(err) != swarm.NotFound {
			return it, err
		}
	}
	return swarm.Artifact{}, swarm.Errorf(swarm.BadInput, "there is no context pack %s in this run", swarm.Quote(ref)).
		WithHint("pass on the ref that came with your mail, or store a pack with put_artifact, kind contextpack; another run's cannot be used")
}

// Given reads the context packs that came with mail. A pack that cannot be read, perhaps because an
// older version stored it, is only named.
func (s *Service) Given(refs []string) (all []contextpack.Given, err error) {
	for _, ref := range refs {
		p, err := s.Pack(ref)
		if kind := swarm.KindOf(err); err != nil && kind != swarm.BadInput {
			return nil, err
		}
		all = append(all, contextpack.Given{Ref: ref, Pack: p, Lost: err != nil})
	}
	return all, nil
}

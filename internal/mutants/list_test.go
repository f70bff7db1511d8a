package mutants

// all lists the mutants. The quick ones are in packages that compile fast.
//
// A mutant runs on the machine of whoever works here, perhaps as root. So none may be able to harm
// it: no mutant removes what keeps a test from deleting, writing or killing outside of its own folder.
var all = []mutant{
	// The log.
	{"an acknowledged append is synced", "internal/sqlite/append.go",
		`if err := wal.Sync(); err != nil {`, `if err := error(nil); wal == nil {`,
		"cmd/swarm", "^TestPowerLoss$", long},
	{"an append is acknowledged after it is written", "internal/sqlite/append.go",
		`r := &request{batch: b, lazy: b.Lazy,`, `r := &request{batch: b, lazy: true,`,
		"internal/sqlite", "^TestStore$/append", slow},
	{"a reader waits until what it reads is on disk", "internal/sqlite/append.go",
		"func (l *Log) secure(seq int64) error {", "func (l *Log) secure(seq int64) error {\n\treturn nil",
		"internal/sqlite", "^TestAnEarlyEventIsOnDiskBeforeAnybodyButItsLoopReadsIt$", slow},
	{"nothing is written after a failed sync", "internal/sqlite/append.go",
		`if broken := l.broken.Load(); broken != nil {`, `if broken := l.broken.Load(); false {`,
		"internal/sqlite", "^TestAFailedSyncEndsTheLog$", slow},
	{"nothing follows a lost event", "internal/sqlite/append.go",
		`if lost := t.l.lost.Load(); lost != nil && lost.fence == b.Fence {`, `if lost := t.l.lost.Load(); false {`,
		"internal/sqlite", "^TestStore$/lazy", slow},
	{"the fence of a late owner is refused", "internal/sqlite/append.go",
		`if fence != b.Fence {`, `if fence < 0 {`,
		"internal/sqlite", "^TestStore$/own", slow},
	{"keys that must be absent are looked for", "internal/sqlite/append.go",
		`for _, key := range b.Absent {`, `for _, key := range b.Absent[:0] {`,
		"internal/sqlite", "^TestStore$/append", slow},
	{"an idempotency key belongs to one content", "internal/sqlite/append.go",
		`case !ok || string(s.view(1)) != string(e.Kind) || !bytes.Equal(s.view(2), e.Data):`, `case !ok || bytes.Equal(nil, []byte("x")):`,
		"internal/sqlite", "^TestStore$/append", slow},
	{"a refused batch leaves nothing", "internal/sqlite/append.go",
		`return err, t.w.exec(sqlUndo, first)`, `return err, nil`,
		"internal/sqlite", "^TestStore$/append", slow},
	{"time never runs backwards", "internal/sqlite/append.go",
		`t.now = max(t.now, s.int64(1))`, `_ = s.int64(1)`,
		"internal/sqlite", "^TestTimeNeverRunsBackwards$", slow},
	{"a living owner keeps its run", "internal/sqlite/own.go",
		`if h.until > t.now && !(h.held && held) {`, `if false {`,
		"internal/sqlite", "^TestStore$/own", slow},
	{"a lost lease is not renewed", "internal/sqlite/own.go",
		`if now, err := t.owner(); err != nil || now != fence {
			return errors.Join(swarm.ErrFenced, err)
		}
		return t.w.exec(sqlRenew`, `return t.w.exec(sqlRenew`,
		"internal/sqlite", "^TestStore$/own", slow},
	{"a run that is driven is not removed", "internal/sqlite/store.go",
		"if held {\n\t\treturn done, &swarm.OwnedError{}", "if held && false {\n\t\treturn done, &swarm.OwnedError{}",
		"internal/sqlite", "^TestARunThatIsDrivenIsNotRemoved$", slow},

	{"a damaged page is not served", "internal/sqlite/vfs.go",
		`|| !whole(number, libc.GoBytes(buf, int(n))) {`, `{`,
		"internal/sqlite", "^TestDamageOfTheFileIsNeverServed$", slow},
	{"a damaged frame of the write-ahead log is not served", "internal/sqlite/vfs.go",
		`if !wholeFrame(before, header, libc.GoBytes(buf, pageSize)) {`, `if !wholeFrame(before, header, libc.GoBytes(buf, pageSize)) && false {`,
		"internal/sqlite", "^TestDamageOfTheWriteAheadLogIsFoundByAnOpenReader$", slow},
	{"events form a chain", "internal/sqlite/chain.go",
		`if r.seq != last+1 || r.sum != sum {`, `if r.seq < 0 {`,
		"internal/sqlite", "^TestDamageByALostWriteIsFoundByTheChain$", slow},
	{"a log that lost its end is refused", "internal/sqlite/mark.go",
		`if err == nil && last < mark {`, `if err == nil && last < 0 {`,
		"internal/sqlite", "^TestDamageOfTheWriteAheadLogIsNeverServed$", slow},
	{"a text is compared with its hash", "internal/sqlite/read.go",
		`if sha256.Sum256(data) != [sha256.Size]byte(sum) {`, `if sha256.Sum256(data) != [sha256.Size]byte(sum) && false {`,
		"internal/sqlite", "^TestATextThatIsNotItsHashIsRefused$", slow},

	// Turns.
	{"a turn's start is on disk before its agent is called", "internal/turn/begin.go",
		`b := swarm.Batch{Fence: w.c.Fence, Bodies:`, `b := swarm.Batch{Early: true, Fence: w.c.Fence, Bodies:`,
		"internal/simulation", "^TestSeeds$", slow},
	{"a late owner cannot end a turn", "internal/turn/end.go",
		`b.Fence, b.Early = c.Fence, true`, `b.Early = true`,
		"internal/simulation", "^TestSeeds$", slow},
	{"a crashed turn keeps its prompt", "internal/turn/turn.go",
		`begun, err = r.resumeStart(w)`, `begun, err = false, nil`,
		"internal/turn", "^TestATurnThatIsDoneAgainHasItsFirstPrompt$", slow},
	{"a turn that has ended is not begun again", "internal/turn/begin.go",
		`b.Absent = []string{swarm.EndKey(string(w.turn))}`, `b.Absent = nil`,
		"internal/turn", ".", slow},
	{"mail is consumed with the turn's end", "internal/turn/end.go",
		`if end.Status == swarm.CallOK && w.inputs.Upto > w.inputs.From {`, `if false {`,
		"internal/simulation", "^TestSeeds$", slow},
	{"a cut turn consumes no mail", "internal/turn/end.go",
		`if end.Status == swarm.CallOK && w.inputs.Upto > w.inputs.From {`, `if w.inputs.Upto > w.inputs.From {`,
		"internal/turn", "^TestMailIsReadByOneTurnThatCommits$", slow},
	{"a turn consumes no mail that it was not given", "internal/plan/team_apply.go",
		`m.consume(end.Inputs.Upto) //`, `m.consume(m.Mail) //`,
		"internal/plan", "^TestTeamSteps$", quick},
	{"the budget of calls holds", "internal/turn/budget.go",
		`case b.Calls > 0 && after.Calls > b.Calls:`, `case false:`,
		"internal/simulation", "^TestSeeds$", slow},
	{"the budget of tokens holds", "internal/turn/budget.go",
		`case b.Tokens > 0 && after.Tokens() > b.Tokens:`, `case false:`,
		"internal/turn", "^TestReservationsOfTwoWorkersKeepOneBudget$", slow},
	{"a crash does not give a reservation back", "internal/turn/budget.go",
		`a.used = a.used.Plus(a.reserved[e.Turn])`, ``,
		"internal/turn", "^TestABudgetOutlivesItsWorkers$", slow},
	{"a cancel cuts the running turn", "internal/turn/control.go",
		"case swarm.CommandCancel:\n\t\treturn swarm.CutByCancel", "case swarm.CommandCancel:\n\t\treturn \"\"",
		"internal/engine/local", "^TestConformance$/cancel", slow},
	{"usage never lowers a sum", "plan.go",
		`a, b = max(0, a), max(0, b)`, `_ = b`,
		".", "^TestUsageNeverShrinks$", quick},

	// Mail and approvals.
	{"an agent writes along edges only", "internal/mail/rules.go",
		`return r.Edge(from, to)`, `return true`,
		"internal/mail", ".", quick},
	{"a message in a prompt cannot forge another", "internal/prompt/escape.go",
		`return escape(string(text))`, `return clean(string(text))`,
		"internal/prompt", "^TestEscapeKnowsOwnLinesInDisguise$", quick},
	{"a question is answered once", "internal/agentapi/grant.go",
		`Key: swarm.AnsweredKey(asked.ID)`, `Key: swarm.AnsweredKey(asked.ID) + answer.By`,
		"internal/agentapi", "^TestFirstAnswer$", slow},
	{"waits that form a cycle are refused", "internal/agentapi/wait.go",
		`if path := s.team.WaitPath(name, waits, before); path != nil {`, `if path := s.team.WaitPath(name, waits, before); false {`,
		"internal/agentapi", "^TestWaits", slow},
	{"a replaced start can do nothing", "internal/agentapi/turn_handle.go",
		`b.Absent = append(b.Absent, next)`, ``,
		"internal/agentapi", "^TestAReplacedStartCanDoNothing$", slow},

	{"a message that is sent again is one message", "internal/agentapi/tools.go",
		`e, err := r.Envelope(h.Agent, d, h.first(), s.now())`, `e, err := r.Envelope(h.Agent, d, s.now().String(), s.now())`,
		"internal/agentapi", "^TestRepeatedTurnRepeatsNothing$", slow},
	{"an agent without a turn can do nothing", "internal/agentapi/turn_handle.go",
		`if !h.enter() {`, `if !h.enter() && false {`,
		"internal/agentapi", "^TestSeatsEnd$", slow},
	{"approvals that are denied in the file are denied", "internal/turn/ask.go",
		"case \"deny\":\n\t\t\treturn false,", "case \"deny\":\n\t\t\treturn true,",
		"internal/turn", "^TestAPersonIsAsked$", slow},

	// Doors.
	{"a request names this server as its host", "internal/httpd/guard.go",
		`if !s.isOwnName(r.Host) {`, `if false {`,
		"internal/httpd", "^TestNobodyGetsIn$", slow},
	{"requests of other origins are refused", "internal/httpd/guard.go",
		`!ok || !s.isOwnName(host) {`, `false && ok && host == "" {`,
		"internal/httpd", "^TestNobodyGetsIn$", slow},
	{"the server's token is compared", "internal/httpd/key.go",
		`subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1`, `subtle.ConstantTimeCompare(sum[:], k.sum[:]) >= 0`,
		"internal/httpd", "^TestAKeyOpensForItsTokenOnly$", slow},
	{"a token is made from the run's secret", "internal/agenttoken/token.go",
		`hmac.Equal([]byte(token), []byte(t.For(agent)))`, `len(token) == len(t.For(agent))`,
		"internal/agenttoken", ".", quick},
	{"JSON with a key twice is refused", "internal/strictjson/strictjson.go",
		`return swarm.Errorf(swarm.BadInput, "the key %s stands there twice", swarm.Quote(key))`, `_ = key`,
		"internal/strictjson", ".", quick},

	// Secrets and files.
	{"secrets are replaced", "internal/secret/secret.go",
		`if r.Empty() || len(b) < minLength {`, `if true {`,
		"internal/secret", ".", quick},
	{"secrets in outputs are replaced", "internal/turn/end.go",
		`return r.redact(reply.Output)`, `return reply.Output`,
		"internal/turn", ".", slow},
	{"programs get no keys of vendors", "internal/process/environ.go",
		`slices.Contains(reserved, name) || IsProviderKey(name) ||`, `slices.Contains(reserved, name) ||`,
		"internal/provider", ".", slow},
	{"loops of another version do not resume a run", "internal/sqlite/own.go",
		`if h.loops != "" && h.loops != loops {`, `if false {`,
		"internal/sqlite", "^TestStore$/own", slow},
	{"a recording that was changed is refused", "internal/recording/read.go",
		`case l.Sum != hex.EncodeToString(sum):`, `case l.Sum != hex.EncodeToString(sum) && false:`,
		"internal/recording", "^TestDamage$", slow},
	{"a tool reads no file outside of its folder", "internal/tool/files.go",
		`info, err := root.Stat(local)
	if err != nil {
		return nil, nil, b.fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(path, info.Mode())
	}
	f, err := root.OpenFile(local,`,
		`local = filepath.Join(root.Name(), local)
	info, err := os.Stat(local)
	if err != nil {
		return nil, nil, b.fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(path, info.Mode())
	}
	f, err := os.OpenFile(local,`,
		"internal/tool", "^TestEscapes$", slow},
	{"a replay is compared with its recording", "internal/engine/replay/mismatch.go",
		`func (p *player) hasLeft() bool { return p.mismatched != nil }`, `func (p *player) hasLeft() bool { return false }`,
		"internal/engine/replay", "^TestAReplayThatLeavesItsRecording$", slow},
}

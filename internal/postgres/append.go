package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"swarm"
	"swarm/internal/logbase"
)

type request = logbase.Request[*tx]

const maxKey = 2000 // bytes; an entry of an index has less than a third of a page

// Append writes a batch, see [logbase.Queue.Append].
func (l *Log) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	if l.readOnly {
		return nil, l.errReadOnly()
	}
	for i := range b.Events {
		e := &b.Events[i]
		for _, field := range fieldsOf(e) {
			if !isText(field) {
				return nil, swarm.Errorf(swarm.BadInput, "an event of kind %s has a field that is not text: %q", e.Kind, field)
			}
		}
		if len(e.Key) > maxKey {
			return nil, swarm.Errorf(swarm.BadInput, "an event's key has %d bytes; %d are allowed", len(e.Key), maxKey)
		}
	}
	for _, key := range b.Absent {
		if !isText(key) {
			return nil, swarm.Errorf(swarm.BadInput, "a key is not text: %q", key)
		}
	}
	return l.queue.Append(ctx, b)
}

// isText reports whether the database takes a string as text.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func fieldsOf(e *swarm.Event) [6]string {
	return [6]string{string(e.Kind), e.Agent, e.Task, string(e.Turn), e.To, e.Key}
}

// A tx is one transaction. It belongs to the leader of the queue.
type tx struct {
	l           *Log
	first, last int64  // the log's last number before the transaction, and now
	sum         uint32 // the last event's checksum
	now         int64
	newest      int64 // the time of the last event before the transaction; 0 = there is none
	holder      holder
	keys        map[string]entry // the events with the keys in question: those of the log, and those of this transaction
	wrote       []swarm.Event
	sums        []int64
	texts       struct{ hashes, data [][]byte }
	changes     []statement
	scratch     []byte
	lost        map[int64]error // by fence: a lazy batch of this transaction was refused
}

// An entry is what is known of an event with a key.
type entry struct {
	seq  int64
	kind string
	data []byte
}

type statement struct {
	sql  string
	args []any
}

// commit writes a group as one transaction.
func (l *Log) commit(group []*request) {
	var content []*request
	for _, r := range group {
		if b := &r.Batch; r.Change != nil || b.Fence != 0 || len(b.Absent)+len(b.Events)+len(b.Bodies) > 0 {
			content = append(content, r)
		} else {
			r.Seqs = []int64{} // An empty batch only waits for those before it.
		}
	}
	if len(content) == 0 {
		return
	}
	giveUp, cancel := allOver(content)
	defer cancel()
	l.n++
	var t *tx
	sent := false // a try before this one may have been committed
	err := l.store.try(context.Background(), giveUp, patience, attempt, func(ctx context.Context, c *pgx.Conn) error {
		next, done, err := l.begin(ctx, c, content, sent)
		if err != nil || done {
			return err
		}
		if t = next; !t.apply(content) {
			_, err := c.Exec(ctx, "ROLLBACK")
			return err
		}
		sent = true
		return t.commit(ctx, c)
	})
	for _, r := range content {
		if err != nil {
			r.Seqs, r.Err = nil, l.store.storage(l.run, err)
		}
		if r.Lazy && r.Err != nil {
			l.queue.Lose(r)
		}
	}
	if err != nil || t == nil || len(t.wrote) == 0 {
		return
	}
	l.see(mark{t.last, t.sum})
	if l.tail.Push(t.first, t.wrote) {
		_ = l.follow(context.Background()) // Other processes wrote in between. A failure shows at the next read.
	}
	l.store.nudger.nudge(l)
}

// allOver returns a context that ends when no caller of the requests waits any more.
func allOver(group []*request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(int64(len(group)))
	var stops []func() bool
	for _, r := range group {
		if !r.Lazy {
			stops = append(stops, context.AfterFunc(r.Context, func() {
				if left.Add(-1) == 0 {
					cancel()
				}
			}))
		}
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// begin makes the first trip. It locks the run's row, and reads what the group needs. Each statement
// after the lock sees everything that was committed before it. done is true if the try before this
// one was committed: its requests have their answers.
func (l *Log) begin(ctx context.Context, c *pgx.Conn, group []*request, sent bool) (t *tx, done bool, err error) {
	keys := keysOf(group)
	known := l.seen()
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue("SELECT last, newest, sum, coalesce((SELECT e.sum FROM swarm.event e WHERE e.run = $1 AND seq = $2), -1), "+holderColumns+
		" FROM swarm.run WHERE num = $1 FOR NO KEY UPDATE", l.num, known.seq)
	if sent {
		b.Queue("SELECT count(*) FROM swarm.writer WHERE run = $1 AND session = $2 AND n = $3", l.num, l.session, l.n)
	}
	if len(keys) > 0 {
		b.Queue("SELECT key, seq, kind, data FROM swarm.event WHERE run = $1 AND key = ANY($2)", l.num, keys)
	}
	answers := c.SendBatch(ctx, &b)
	defer func() { err = errors.Join(err, answers.Close()) }()
	if _, err := answers.Exec(); err != nil {
		return nil, false, err
	}
	t = &tx{l: l, keys: map[string]entry{}}
	var sum, there int64
	err = answers.QueryRow().Scan(append([]any{&t.first, &t.newest, &sum, &there}, t.holder.fields()...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, l.errGone()
	}
	if err == nil {
		err = l.checkEnd(known, t.first, there)
	}
	if err != nil {
		return nil, false, err
	}
	t.last, t.sum, t.now = t.first, uint32(sum), max(t.holder.now, t.newest) // The time of a log never runs backwards.
	if sent {
		var n int64
		if err := answers.QueryRow().Scan(&n); err != nil || n > 0 {
			return nil, n > 0, err
		}
	}
	if len(keys) > 0 {
		rows, err := answers.Query()
		if err != nil {
			return nil, false, err
		}
		var key string
		var e entry
		if _, err := pgx.ForEachRow(rows, []any{&key, &e.seq, &e.kind, &e.data}, func() error {
			t.keys[key] = e
			e.data = nil // the next row has memory of its own
			return nil
		}); err != nil {
			return nil, false, err
		}
	}
	return t, false, nil
}

// keysOf returns the keys that a group asks for.
func keysOf(group []*request) (keys []string) {
	for _, r := range group {
		keys = append(keys, r.Batch.Absent...)
		for i := range r.Batch.Events {
			if key := r.Batch.Events[i].Key; key != "" {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// apply does what the requests ask for, in memory. It returns false if there is nothing to be
// written.
func (t *tx) apply(group []*request) bool {
	for _, r := range group {
		if r.Err = nil; r.Change != nil {
			r.Err = r.Change(t)
			continue
		}
		if r.Seqs, r.Err = t.add(r); r.Err != nil && r.Lazy {
			if t.lost == nil { // The queue is told after the last try: the next one applies the whole group again.
				t.lost = map[int64]error{}
			}
			t.lost[r.Batch.Fence] = logbase.LostError(r.Err)
		}
	}
	return len(t.wrote)+len(t.texts.hashes)+len(t.changes) > 0
}

// add adds a batch, whole or not at all.
func (t *tx) add(r *request) (seqs []int64, err error) {
	if err := t.admit(&r.Batch); err != nil {
		return nil, err
	}
	first, sum := t.last, t.sum
	var added []string
	seqs = make([]int64, 0, len(r.Batch.Events))
	for i := range r.Batch.Events {
		e := &r.Batch.Events[i]
		if old, ok := t.keys[e.Key]; ok && e.Key != "" {
			if old.kind != string(e.Kind) || !bytes.Equal(old.data, e.Data) {
				for _, key := range added {
					delete(t.keys, key)
				}
				n := len(t.wrote) - int(t.last-first)
				t.wrote, t.sums, t.last, t.sum = t.wrote[:n], t.sums[:n], first, sum
				return nil, fmt.Errorf("%w: %s", swarm.ErrConflict, e.Key)
			}
			seqs = append(seqs, old.seq)
			continue
		}
		t.last++
		fields := fieldsOf(e)
		t.sum = logbase.Sum(&t.scratch, t.sum, t.last, t.now, &fields, e.Data)
		t.wrote = append(t.wrote, *e)
		w := &t.wrote[len(t.wrote)-1]
		w.Seq, w.Time = t.last, time.UnixMicro(t.now).UTC()
		t.sums = append(t.sums, int64(t.sum))
		if e.Key != "" {
			t.keys[e.Key] = entry{t.last, string(e.Kind), e.Data}
			added = append(added, e.Key)
		}
		seqs = append(seqs, t.last)
	}
	for i, text := range r.Batch.Bodies {
		t.texts.hashes = append(t.texts.hashes, r.Sums[i][:])
		t.texts.data = append(t.texts.data, append([]byte{}, text...)) // not nil, which would be NULL
	}
	return seqs, nil
}

// admit checks the conditions of a batch.
func (t *tx) admit(b *swarm.Batch) error {
	if b.Fence != 0 {
		if t.holder.fence != b.Fence {
			return swarm.ErrFenced
		}
		if err := cmp.Or(t.l.queue.Lost(b.Fence), t.lost[b.Fence]); err != nil {
			return err
		}
	}
	for _, key := range b.Absent {
		if _, ok := t.keys[key]; ok {
			return swarm.ErrStale
		}
	}
	return nil
}

// exec adds a statement to the transaction.
func (t *tx) exec(sql string, args ...any) {
	t.changes = append(t.changes, statement{sql, args})
}

// commit makes the second trip.
func (t *tx) commit(ctx context.Context, c *pgx.Conn) error {
	var b pgx.Batch
	if n := len(t.wrote); n > 0 {
		seqs, times, data := make([]int64, n), make([]int64, n), make([][]byte, n)
		var columns [6][]string
		for i := range columns {
			columns[i] = make([]string, n)
		}
		for i := range t.wrote {
			e := &t.wrote[i]
			seqs[i], times[i], data[i] = e.Seq, t.now, e.Data
			if data[i] == nil {
				data[i] = []byte{} // not NULL
			}
			for j, field := range fieldsOf(e) {
				columns[j][i] = field
			}
		}
		b.Queue(`INSERT INTO swarm.event SELECT $1, seq, time, kind, agent, task, turn, rcv, nullif(key, ''), data, sum FROM
			unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[], $11::bigint[])
			AS t(seq, time, kind, agent, task, turn, rcv, key, data, sum)`,
			t.l.num, seqs, times, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], data, t.sums)
		b.Queue("UPDATE swarm.run SET last = $2, newest = $3, sum = $4 WHERE num = $1", t.l.num, t.last, t.now, int64(t.sum))
	}
	if len(t.texts.hashes) > 0 {
		b.Queue("INSERT INTO swarm.text SELECT $1, hash, data FROM unnest($2::bytea[], $3::bytea[]) AS t(hash, data) ON CONFLICT DO NOTHING",
			t.l.num, t.texts.hashes, t.texts.data)
	}
	for _, s := range t.changes {
		b.Queue(s.sql, s.args...)
	}
	b.Queue("INSERT INTO swarm.writer VALUES ($1, $2, $3) ON CONFLICT (run, session) DO UPDATE SET n = excluded.n", t.l.num, t.l.session, t.l.n)
	b.Queue("COMMIT")
	return c.SendBatch(ctx, &b).Close()
}

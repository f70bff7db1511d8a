package sqlite

import (
	"path/filepath"
	"testing"

	"swarm/internal/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "run.db")
		l, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		first := l
		return func(t *testing.T) storetest.Store {
			if l := first; l != nil { // the suite sees a created log as well as opened ones
				first = nil
				return l
			}
			l, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
	})
}

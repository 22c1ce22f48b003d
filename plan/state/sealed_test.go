package state

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
)

const canary = "canary-7f3a"

// secretRun is a run that was killed after it had stored a secret, and with an
// operation under way that knows one.
func secretRun(t *testing.T, base []byte) *memory {
	t.Helper()
	m := newMemory()
	m.snapshot = base
	j := begin(t, open(t, m))
	a := instance("one", address.Key{})
	o, err := NewObject(cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(canary)}), testType,
		Meta{Provider: testProvider, Private: []byte(canary), Sensitive: []cty.Path{cty.GetAttrPath("name")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Result{
		{Changes: []Change{{Address: a, Object: o}}, Durable: true},
		{Outputs: map[string]Output{"o": {Value: cty.StringVal(canary), Sensitive: true}}, Durable: true},
	} {
		if err := j.Result(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	in := Intent{ID: "1", Address: a, Action: Update, Provider: testProvider, Planned: []byte(`{"name":"` + canary + `"}`), Private: []byte(canary), Durable: true}
	if err := j.Intent(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return m.revive()
}

func TestSealed(t *testing.T) {
	for name, base := range map[string][]byte{"no state": nil, "a state": readTestdata(t)} {
		t.Run(name, func(t *testing.T) {
			m := secretRun(t, base)
			if bytes.Contains(m.journal, []byte("canary")) || bytes.Contains(m.journal, []byte("test_file")) {
				t.Errorf("the journal shows what it holds:\n%q", m.journal)
			}
			var doc map[string]any
			if err := json.Unmarshal(m.snapshot, &doc); err != nil || doc["version"] != 5.0 || len(doc[keyMember].(string)) != 64 {
				t.Errorf("the snapshot is %v, %s", err, m.snapshot)
			}
			f := open(t, m)
			if got := describeState(f.State(), f.Open()); strings.Count(got, canary) != 3 {
				t.Errorf("the next run reads\n%s", got)
			}
			j := begin(t, f)
			if err := settle(t, j); err != nil {
				t.Fatal(err)
			}
			closeJournal(t, j)
			if m.journal != nil || bytes.Contains(m.snapshot, []byte(keyMember)) || !bytes.Contains(m.snapshot, []byte(canary)) {
				t.Errorf("folded:\n%s", m.snapshot)
			}
			if bytes.Contains(m.backup, []byte(keyMember)) {
				t.Errorf("the key is in the backup:\n%s", m.backup)
			}
		})
	}
}

func TestSealedErrors(t *testing.T) {
	m := secretRun(t, readTestdata(t))
	key := func(s []byte) string {
		i := bytes.Index(s, []byte(`,"`+keyMember))
		return string(s[i : i+len(keyMember)+5+64+1])
	}
	own := key(m.snapshot)
	text := string(m.snapshot)
	for name, tt := range map[string]struct{ snapshot, want string }{
		"no key":        {strings.Replace(text, own, "", 1), "record 1 is sealed, and the state does not have its key"},
		"another's key": {strings.Replace(text, own, key(secretRun(t, readTestdata(t)).snapshot), 1), "record 1 cannot be opened"},
		"key moved":     {strings.Replace(strings.Replace(text, own, "", 1), `"version": 5,`, `"version": 5`+own+`,`, 1), ""},
		"key cut":       {strings.Replace(text, own, own[:60]+`"`, 1), "is not as stoke wrote it"},
		"key first":     {strings.Replace(strings.Replace(text, own, "", 1), `{`, `{`+own[1:]+`,`, 1), "is not as stoke wrote it"},
		"5 to 4":        {strings.Replace(text, `"version": 5`, `"version": 4`, 1), ""},
	} {
		n := m.revive()
		n.snapshot = []byte(tt.snapshot)
		f, err := Open(t.Context(), n)
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, %v, want %s", name, f, err, tt.want)
		case tt.want == "":
			j := begin(t, f)
			if err := settle(t, j); err != nil {
				t.Fatal(err)
			}
			closeJournal(t, j)
			if !bytes.Contains(n.snapshot, []byte(canary)) || bytes.Contains(n.snapshot, []byte(keyMember)) {
				t.Errorf("%s, folded:\n%s", name, n.snapshot)
			}
		}
	}
	changed := m.revive()
	changed.journal = bytes.Clone(changed.journal)
	frames, _, _ := splitFrames(changed.journal)
	f := frames[1]
	swapped := appendFrame(nil, 0, kindHeader, frames[0].payload)
	swapped = appendFrame(swapped, 1, frames[2].kind, frames[2].payload)
	swapped = appendFrame(swapped, 2, f.kind, f.payload)
	changed.journal = swapped
	if _, err := Open(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "record 1 cannot be opened") {
		t.Errorf("records in another order: %v", err)
	}
}

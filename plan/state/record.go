package state

import (
	"fmt"
	"slices"

	"github.com/stokehq/stoke/modules/address"
)

// journalFormat is the version of the records below: 2 since they are sealed.
const journalFormat = 2

// header is the first record of a journal: what it belongs to.
type header struct {
	format  uint64
	lineage string
	serial  uint64
	sum     string // digest of the snapshot, as snapshot.sum has it
	fresh   bool   // there was no snapshot before
}

func (h header) encode() []byte {
	w := &writer{}
	w.open('{')
	w.unsignedMember("stoke_journal", h.format)
	w.stringMember("lineage", h.lineage)
	w.unsignedMember("serial", h.serial)
	w.stringMember("sha256", h.sum)
	w.trueMember("fresh", h.fresh)
	w.close('}')
	return w.buf
}

// scanRecord begins to read a record's payload, which must be text.
func scanRecord(payload []byte) *scanner {
	s := &scanner{buf: payload}
	s.checkUTF8()
	return s
}

func decodeHeader(payload []byte) (h header, err *syntaxError) {
	s := scanRecord(payload)
	s.members(func(name []byte, offset int) {
		switch string(name) {
		case "stoke_journal":
			h.format = s.unsigned()
		case "lineage":
			h.lineage = s.str()
		case "serial":
			h.serial = s.unsigned()
		case "sha256":
			h.sum = s.str()
		case "fresh":
			h.fresh = s.boolean()
		default:
			s.skip() // a newer format says so in stoke_journal
		}
	})
	s.end()
	if s.err == nil && h.format == 0 {
		s.fail(0, "the first record does not say what journal this is")
	}
	return h, s.err
}

// fold identifies the snapshot that includes the journal.
type fold struct {
	serial uint64
	sum    string
}

func (f fold) encode() []byte {
	w := &writer{}
	w.open('{')
	w.unsignedMember("serial", f.serial)
	w.stringMember("sha256", f.sum)
	w.close('}')
	return w.buf
}

func decodeFold(payload []byte) (f fold, err *syntaxError) {
	s := scanRecord(payload)
	s.members(func(name []byte, offset int) {
		switch string(name) {
		case "serial":
			f.serial = s.unsigned()
		case "sha256":
			f.sum = s.str()
		default:
			s.unknown(name, offset)
		}
	})
	s.end()
	return f, s.err
}

func (s *scanner) unknown(name []byte, offset int) {
	s.fail(offset, "the record has an unknown member %q", clip(name))
}

// address writes an instance's address as members of the present object.
func (w *writer) address(a address.Instance) {
	w.optional("module", string(a.Module))
	w.stringMember("mode", mode(a.Mode))
	w.stringMember("type", a.Type)
	w.stringMember("name", a.Name)
	w.key(a.Key)
}

// addressMember reads one of the members that address writes, and reports
// whether it was one.
func (s *scanner) addressMember(a *address.Instance, name []byte, strings intern) bool {
	at := s.pos
	switch string(name) {
	case "module":
		a.Module = address.Module(s.internString(strings))
	case "mode":
		switch m := s.str(); m {
		case "data":
			a.Mode = address.Data
		case "managed":
		default:
			s.fail(at, "the mode %q is unknown", clip([]byte(m)))
		}
	case "type":
		a.Type = s.internString(strings)
		s.checkName(at, "type", a.Type)
	case "name":
		a.Name = s.str()
		s.checkName(at, "name", a.Name)
	case "index_key":
		a.Key = s.key()
	default:
		return false
	}
	return true
}

func (s *scanner) checkAddress(a address.Instance) {
	if s.err == nil && (a.Type == "" || a.Name == "") {
		s.fail(0, "the record lacks an address")
	}
}

// intent writes an intent. The planned value has the form of a stored object.
func (w *writer) intent(in *Intent) {
	w.open('{')
	w.stringMember("id", in.ID)
	w.stringMember("action", string(in.Action))
	w.address(in.Address)
	w.optional("deposed", in.Deposed)
	w.optional("depose_to", in.DeposeTo)
	w.stringMember("provider", in.Provider)
	w.unsignedMember("schema_version", uint64(in.SchemaVersion))
	if in.Planned != nil {
		w.rawMember("planned", in.Planned)
	}
	if len(in.Sensitive) > 0 {
		w.pathsMember("sensitive_attributes", in.Sensitive)
	}
	w.base64Member("private", in.Private)
	w.stringsMember("dependencies", in.Dependencies)
	w.trueMember("create_before_destroy", in.CreateBeforeDestroy)
	w.close('}')
}

func (s *scanner) intent(strings intern) Intent {
	var in Intent
	s.members(func(name []byte, offset int) {
		switch string(name) {
		case "id":
			in.ID = s.str()
		case "action":
			at := s.pos
			in.Action = Action(s.internString(strings))
			if !in.Action.isKnown() {
				s.fail(at, "the action %q is unknown", clip([]byte(in.Action)))
			}
		case "deposed":
			in.Deposed = s.str()
		case "depose_to":
			in.DeposeTo = s.str()
		case "provider":
			in.Provider = s.internString(strings)
		case "schema_version":
			in.SchemaVersion = s.schemaVersion()
		case "planned":
			in.Planned = s.raw()
		case "sensitive_attributes":
			in.Sensitive = s.paths(strings)
		case "private":
			in.Private = s.base64()
		case "dependencies":
			in.Dependencies = s.strings(strings)
		case "create_before_destroy":
			in.CreateBeforeDestroy = s.boolean()
		default:
			if !s.addressMember(&in.Address, name, strings) {
				s.unknown(name, offset)
			}
		}
	})
	s.checkAddress(in.Address)
	if s.err == nil && (in.ID == "" || in.Action == "") {
		s.fail(0, "the intent lacks its id or action")
	}
	return in
}

func (a Action) isKnown() bool { return slices.Contains([]Action{Create, Update, Delete}, a) }

// result writes a result whose objects have the form of objects in a snapshot.
func (w *writer) result(r *Result) {
	w.open('{')
	w.optional("intent", r.Intent)
	w.optional("error", r.Err)
	if len(r.Changes) > 0 {
		w.name("changes")
		w.open('[')
		for i := range r.Changes {
			w.next()
			w.change(&r.Changes[i])
		}
		w.close(']')
	}
	if r.Outputs != nil {
		w.outputsMember("outputs", r.Outputs)
	}
	if r.Checks != nil {
		w.checksMember("checks", r.Checks)
	}
	w.close('}')
}

func (w *writer) change(c *Change) {
	w.open('{')
	w.address(c.Address)
	w.optional("deposed", c.Deposed)
	if c.Object != nil {
		w.stringMember("provider", c.Object.Provider)
		w.name("object")
		w.instance(stored{object: c.Object})
	}
	w.close('}')
}

func (s *scanner) result(strings intern) Result {
	var r Result
	s.members(func(name []byte, offset int) {
		switch string(name) {
		case "intent":
			r.Intent = s.str()
		case "error":
			r.Err = s.str()
		case "changes":
			s.array(func() { r.Changes = append(r.Changes, s.change(strings)) })
		case "outputs":
			r.Outputs = map[string]Output{}
			s.object(func(name []byte, _ int) { r.Outputs[string(name)] = s.output() })
		case "checks":
			if r.Checks = s.checkResults(); r.Checks == nil {
				r.Checks = []CheckResult{}
			}
		default:
			s.unknown(name, offset)
		}
	})
	return r
}

func (s *scanner) change(strings intern) Change {
	var c Change
	var provider string
	s.members(func(name []byte, offset int) {
		switch string(name) {
		case "deposed":
			c.Deposed = s.str()
		case "provider":
			provider = s.internString(strings)
		case "object":
			c.Object = s.instance(strings).object
		default:
			if !s.addressMember(&c.Address, name, strings) {
				s.unknown(name, offset)
			}
		}
	})
	s.checkAddress(c.Address)
	if c.Object != nil {
		c.Object.Provider = provider
	}
	return c
}

// checkStorable reports what could be written but not read again.
func (c *Change) checkStorable() error {
	if err := storableAddress(c.Address); err != nil {
		return err
	}
	if c.Object == nil {
		return nil
	}
	name := describe(c.Address, c.Deposed)
	if c.Object.Provider == "" {
		return fmt.Errorf("store %s: it has no provider", name)
	}
	if c.Object.JSON == nil && hasMember(c.Object.extra, flatAttributes) {
		return nil
	}
	s := &scanner{buf: c.Object.JSON}
	if s.peek() != '{' {
		s.expected("an object")
	}
	s.skip()
	s.end()
	if s.err != nil {
		return fmt.Errorf("store %s: its attributes are not a JSON object: %w", name, s.err)
	}
	if c.Object.SchemaVersion < 0 {
		return fmt.Errorf("store %s: its schema version is %d", name, c.Object.SchemaVersion)
	}
	return nil
}

func storableAddress(a address.Instance) error {
	s := &scanner{}
	s.checkName(0, "type", a.Type)
	s.checkName(0, "name", a.Name)
	if s.err != nil {
		return fmt.Errorf("store %s: %s", a, s.err.reason)
	}
	if n, ok := a.Key.Int(); ok && (n < 0 || n > maxIndex) {
		return fmt.Errorf("store %s: the key is out of range", a)
	}
	return nil
}

func (in *Intent) checkStorable() error {
	if err := storableAddress(in.Address); err != nil {
		return err
	}
	switch {
	case in.ID == "":
		return fmt.Errorf("announce %s: the operation has no id", in.Address)
	case !in.Action.isKnown():
		return fmt.Errorf("announce %s: the action %q is unknown", in.Address, in.Action)
	case in.SchemaVersion < 0:
		return fmt.Errorf("announce %s: its schema version is %d", in.Address, in.SchemaVersion)
	}
	if in.Planned == nil {
		return nil
	}
	s := &scanner{buf: in.Planned}
	s.skip()
	s.end()
	if s.err != nil {
		return fmt.Errorf("announce %s: the planned object is not valid JSON: %w", in.Address, s.err)
	}
	return nil
}

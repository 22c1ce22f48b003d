package http

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/syntax"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// openBackend opens what a backend block says.
func openBackend(t testing.TB, block string, environ map[string]string) (backend.Backend, error) {
	t.Helper()
	k := Kind()
	body, diags := syntax.Parse("b.tfvars", []byte(block))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	values, diags := k.Read(body)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c, problems := k.Resolve(values, func(name string) string { return environ[name] })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return k.Open(t.Context(), c)
}

// place starts a server and returns how it is opened.
func place(t testing.TB, h http.Handler, more string) func() state.Store {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	block := `
address        = "` + srv.URL + `/state"
lock_address   = "` + srv.URL + `/lock"
unlock_address = "` + srv.URL + `/lock"
username       = "u"
password       = "secret"
retry_wait_min = 0
retry_wait_max = 0
` + more
	return func() state.Store {
		b, err := openBackend(t, block, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		s, err := b.Store(backend.DefaultWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func newServer(etags bool) *storetest.Web {
	return &storetest.Web{ETags: etags, User: "u", Password: "secret"}
}

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Place:     func(t testing.TB) func() state.Store { return place(t, newServer(true), "") },
		AnyUnlock: true,
	})
}

// TestPlainServer is one that gives no ETags: the lock alone keeps others
// out, so that two writers without it are not noticed.
func TestPlainServer(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Place:     func(t testing.TB) func() state.Store { return place(t, newServer(false), "") },
		AnyUnlock: true, Unconditional: true,
	})
}

func TestSabotage(t *testing.T) {
	for _, etags := range []bool{true, false} {
		for _, retries := range []string{"retry_max = 0", "retry_max = 1"} {
			storetest.Sabotage(t, storetest.Sabotaged{
				Place: func(t testing.TB) (func() state.Store, *storetest.Saboteur) {
					s := &storetest.Saboteur{Server: newServer(etags)}
					return place(t, s, retries), s
				},
				Patience: time.Minute,
			})
		}
	}
}

func TestDocument(t *testing.T) {
	for _, snapshot := range []string{
		"", "{}", "{}\n", `{"version":5}` + "\n\n", `{"a":",\"stoke_journal\":\"x"}`,
		`{"attributes":{"x":1,"stoke_journal":"eA=="},"z":1}`, string(state.New("l").Encode(7)),
	} {
		for _, journal := range [][]byte{nil, {}, []byte("\x00\xff\x01 records")} {
			d := document{journal: journal}
			if snapshot != "" {
				d.snapshot = []byte(snapshot)
			}
			text, err := d.encode()
			if err != nil {
				t.Fatal(err)
			}
			if text == nil {
				continue
			}
			got, err := decodeDocument(text)
			if err != nil || string(got.snapshot) != snapshot || (got.snapshot == nil) != (snapshot == "") ||
				!bytes.Equal(got.journal, journal) || (got.journal == nil) != (journal == nil) {
				t.Errorf("%q with %q became %q with %q, %v (%s)", snapshot, journal, got.snapshot, got.journal, err, text)
			}
		}
	}
	for _, text := range []string{`{"version":5,"stoke_snapshot":false,"stoke_journal":"!"}`, `{"stoke_journal": "eA==", "stoke_snapshot": false}`} {
		if d, err := decodeDocument([]byte(text)); err == nil {
			t.Errorf("%s was read as %q", text, d)
		}
	}
}

// TestRefusals has the server refuse, and looks at what people are told.
func TestRefusals(t *testing.T) {
	tests := []struct {
		status int
		body   string
		want   string
	}{
		{401, "", "username and password"},
		{403, "", "does not allow"},
		{404, "", ""}, // there is no state yet
		{204, "", ""},
		{500, "the disk is full", "the disk is full"},
		{502, "<html>", "502 Bad Gateway"},
		{418, "", "418"},
		{200, "{not json", ""}, // the engine says so
	}
	for _, tt := range tests {
		s := place(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.body))
		}), "retry_max = 0")()
		_, _, err := s.ReadSnapshot(t.Context())
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d %q: error %v, want %q", tt.status, tt.body, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the password is in %v", err)
		}
	}
}

func TestConfiguration(t *testing.T) {
	for block, want := range map[string]string{
		`address = "ftp://x"`: "http:// or https://",
		`address = "http://x"` + "\nlock_address = \"nowhere\"":             "lock_address",
		`address = "http://x"` + "\nretry_max = -1":                         "retry_max",
		`address = "http://x"` + "\nclient_certificate_pem = \"x\"":         "belong together",
		`address = "http://x"` + "\nclient_ca_certificate_pem = \"x\"":      "no certificate",
		`address = "https://u:hidden@x` + "\x7f\"":                          "URL",
		`address = "http://x"` + "\nlock_address = \"gopher://u:hidden@x\"": "lock_address",
	} {
		_, err := openBackend(t, block, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", block, err, want)
		}
	}
	if _, err := openBackend(t, "", map[string]string{"TF_HTTP_ADDRESS": "http://x", "TF_HTTP_RETRY_MAX": "7"}); err != nil {
		t.Error(err)
	}
	k := Kind()
	if _, _, err := k.Set("adress=x"); err == nil || !strings.Contains(err.Error(), `did you mean "address"?`) {
		t.Errorf("a misspelled argument: %v", err)
	}
	if name, v, err := k.Set("retry_max=3"); err != nil || name != "retry_max" || !v.RawEquals(cty.NumberIntVal(3)) {
		t.Errorf("retry_max: %v %v", v, err)
	}
	if _, problems := k.Resolve(backend.Values{}, func(string) string { return "" }); len(problems) != 1 || !strings.Contains(problems[0], "TF_HTTP_ADDRESS") {
		t.Errorf("without an address: %v", problems)
	}
	body, _ := syntax.Parse("b.tfvars", []byte("address = var.x\npassward = 1\n"))
	if _, diags := k.Read(body); len(diags) != 2 || diags[0].Severity != hcl.DiagError {
		t.Errorf("diagnostics %v", diags)
	}
}

func TestRedacted(t *testing.T) {
	for address, want := range map[string]string{
		"https://u:hunter2@host/p?private_token=hunter2&key=prod&x=": "https://u:xxxxx@host/p?private_token=xxxxx&key=prod&x=",
		"https://host/p?name=a%2Fb":                                  "https://host/p?name=a%2Fb",
		"https://host/p":                                             "https://host/p",
	} {
		if got := redacted(address); got != want {
			t.Errorf("%s becomes %s, want %s", address, got, want)
		}
	}
}
